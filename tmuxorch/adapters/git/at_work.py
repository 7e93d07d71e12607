"""Which processes may be changing a repository now: a lock file does not say whose it is."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress

from tmuxorch.adapters.git.call import CALLER
from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.process_row import Row
from tmuxorch.adapters.system.process_table import (
    ABSENT,
    read_arguments,
    read_command,
    read_table,
)
from tmuxorch.adapters.system.processes import send_signal, wait_dead
from tmuxorch.model import ProcessId

TIDY_S = 3.0
ENDING_S = 0.2
# They read only, and may sit behind a pager for days.
LOOKS = {
    *("blame", "cat-file", "check-ignore", "diff", "diff-files", "diff-index", "diff-tree"),
    *("for-each-ref", "fsmonitor--daemon", "grep", "log", "ls-files", "ls-remote", "ls-tree"),
    *("rev-list", "rev-parse", "shortlog", "show", "show-ref", "status", "var", "whatchanged"),
}
VALUED = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix")


def observe_at_work(directories: Iterable[str]) -> tuple[str, ...]:
    """Who may hold a lock of the repository with these directories, in words; () is certain.

    Counted are gits that stand there, gits of which that cannot be seen, and whoever has a
    file of it open.
    """
    places = tuple(os.path.realpath(place) for place in directories)
    return tuple(
        f"{row.pid} ({read_command(row)})"
        for row in read_table().values()
        if not row.ended and row.pid != os.getpid() and _may_hold(row, places)
    )


def can_see_files() -> bool:
    """Whether open files can be seen at all; without, only age tells a lock that was left."""
    return procfs.LINUX


def _may_hold(row: Row, places: Sequence[str]) -> bool:
    if row.name.startswith("git") and _subcommand(read_arguments(row.pid)) not in LOOKS:
        if row.cwd is None:  # another user's; or it is just ending, and stands nowhere any more
            return not wait_dead(row.id, ENDING_S)
        return _is_in(row.cwd, places)
    with suppress(*ABSENT):
        for fd in os.listdir(f"/proc/{row.pid}/fd") if procfs.LINUX else ():
            name = os.readlink(f"/proc/{row.pid}/fd/{fd}")
            if name.endswith(".lock") and _is_in(name, places):
                return True
    return False


def _is_in(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(place + os.sep) for place in places)


def _subcommand(arguments: Sequence[str]) -> str:
    rest = iter(arguments[1:])
    for word in rest:
        if word in VALUED:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def end_orphans(caller: ProcessId) -> None:
    """End every git that a command of ours started which has died; TERM lets git tidy up."""
    own = os.fsencode(f"{CALLER}={caller}")
    left = [
        row.id
        for row in read_table().values()
        if not row.ended and row.name.startswith("git") and own in (row.environ or b"").split(b"\0")
    ]
    for signum in (signal.SIGTERM, signal.SIGKILL):
        left = [orphan for orphan in left if send_signal(orphan, signum)]
        left = [orphan for orphan in left if not wait_dead(orphan, TIDY_S)]
