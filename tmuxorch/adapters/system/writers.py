"""Who may still write into a directory: open files, and memory that is a file."""

from __future__ import annotations

import os
from contextlib import suppress

from tmuxorch.adapters.system.process_table import ABSENT
from tmuxorch.adapters.system.small_files import read_file

_DELETED = " (deleted)"


def find_written(pid: int, path: str) -> str | None:
    """A file below `path` that the process has open or mapped for writing, in words."""
    below = path + os.sep
    return _open_below(pid, below) or _mapped_below(pid, below)


def _open_below(pid: int, path: str) -> str | None:
    with suppress(*ABSENT):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
            if name.startswith(path) and not _is_deleted(name):
                flags = read_file(f"/proc/{pid}/fdinfo/{fd}").split(b"flags:\t")[1]
                if int(flags.split()[0], 8) & (os.O_WRONLY | os.O_RDWR):
                    return f"{name} open for writing"
    return None


def _mapped_below(pid: int, path: str) -> str | None:
    """A file that the process can write into by memory alone: its descriptor may be closed."""
    wanted = os.fsencode(path).replace(b"\n", b"\\012")
    with suppress(*ABSENT):
        text = read_file(f"/proc/{pid}/maps")
        if wanted not in text:
            return None
        for line in text.splitlines():
            span, rights, *_, name = line.split(maxsplit=5)
            if not name.startswith(wanted) or not rights.endswith(b"s"):
                continue
            shown = os.fsdecode(name.replace(b"\\012", b"\n"))
            if not _is_deleted(shown) and (b"w" in rights or _may_be_written(pid, span)):
                return f"{shown} mapped for writing"
    return None


def _may_be_written(pid: int, span: bytes) -> bool:
    """Whether a mapping that is read-only now can be made writable: it was opened for that."""
    _, _, rest = read_file(f"/proc/{pid}/smaps").partition(span + b" ")
    return b"mw" in rest.partition(b"VmFlags: ")[2].partition(b"\n")[0].split()


def _is_deleted(name: str) -> bool:
    return name.endswith(_DELETED) and not os.path.lexists(name)
