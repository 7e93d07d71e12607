"""All processes at once, each with what tells whose it is."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.machine import read_machine
from tmuxorch.adapters.system.process_row import Row, Table, find_marker
from tmuxorch.adapters.system.small_files import read_file
from tmuxorch.core.literal import literal
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import ProcessId

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNEL_THREAD = 0x0020_0000
COMMAND_CHARS = 80
LISTINGS = 3

# What a look at a process meets that has just ended, or that another user hides from us.
ABSENT = (ProcessLookupError, FileNotFoundError, PermissionError)


def read_table() -> Table:
    """Every process but the kernel's threads, zombies too; TmuxorchError if it cannot be read.

    The rows are not of one instant, so it is listed again for what was forked meanwhile.
    """
    if not procfs.LINUX:
        from tmuxorch.adapters.system import portable

        return portable.read_table()
    procfs.read_here()  # an empty /proc, or another namespace's, would be a table of nobody
    table: Table = {}
    seen: set[str] = set()
    try:
        for _ in range(LISTINGS):
            fresh = [entry for entry in os.listdir("/proc") if entry not in seen]
            seen.update(fresh)
            for pid in map(int, filter(str.isdecimal, fresh)):
                with suppress(*ABSENT):
                    row = _read_row(pid)
                    if row is not None:
                        table[pid] = row
    except OSError as error:
        raise TmuxorchError(f"the process table cannot be read: {error.strerror}") from error
    return table


def ancestors(table: Table, pid: int) -> Iterator[int]:
    """The process itself, its parent, and so on."""
    seen: set[int] = set()
    while pid in table and pid not in seen:
        seen.add(pid)
        yield pid
        pid = table[pid].parent


def read_command(row: Row) -> str:
    """The command line, safe to print and short; the bare name if there is none."""
    text = " ".join(read_arguments(row.pid)).strip() or row.name
    text = literal(text[: COMMAND_CHARS + 1])
    return text if len(text) <= COMMAND_CHARS else text[: COMMAND_CHARS - 1] + "…"


def read_arguments(pid: int) -> list[str]:
    """The arguments a process was started with; none of one that has ended or is hidden."""
    text = ""
    if not procfs.LINUX:
        from tmuxorch.adapters.system import portable

        text = portable.read_command(pid)
    else:
        with suppress(*ABSENT):
            text = os.fsdecode(read_file(f"/proc/{pid}/cmdline"))
    return text.rstrip("\0").split("\0")


def _read_row(pid: int) -> Row | None:
    boot, namespace = procfs.read_here()
    inode = procfs.read_inode(pid)
    name, stat = procfs.read_stat(pid)
    if int(stat[procfs.FLAGS]) & KERNEL_THREAD:
        return None
    row = Row(
        id=ProcessId(boot, namespace, pid, int(stat[procfs.TICKS]), inode, read_machine()),
        name=os.fsdecode(name),
        parent=int(stat[procfs.PARENT]),
        group=int(stat[procfs.GROUP]),
        session=int(stat[procfs.SESSION]),
        uid=os.stat(f"/proc/{pid}").st_uid,
        on_terminal=stat[procfs.TERMINAL] != b"0",
        ended=procfs.has_ended(stat),
    )
    if not row.ended and os.geteuid() in (0, row.uid):
        with suppress(*ABSENT):
            environ = read_file(f"/proc/{pid}/environ")
            # In the midst of an exec it is empty as well, but then its bounds are unset.
            is_set = stat[procfs.ENV_START] == stat[procfs.ENV_END] != b"0"
            row.environ = environ if environ or is_set else None
            row.marker = find_marker(environ)
            row.cwd = os.readlink(f"/proc/{pid}/cwd")
    return row
