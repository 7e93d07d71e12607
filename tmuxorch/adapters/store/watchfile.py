"""The file by which everybody knows who watches, and since when not.

`watch.lock` is locked by the leader for as long as it lives and is never unlinked. Its text is
the leader's identity, its time of change the last pass; whoever only wants to know reads both
and leaves the lock alone. A byte into the FIFO `watch.poke` asks for a pass at once.
`tmuxorch ls` imports this module.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

from tmuxorch.adapters.system import procfs
from tmuxorch.core.observation import Alive, Unknown
from tmuxorch.model import ProcessId
from tmuxorch.reading import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import Self
else:
    from tmuxorch.values import dataclass


SILENT_S = 10.0  # a watcher writes once a second; only one that is stuck or dead is silent so long
LISTEN_S = 3.0


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who watches; `alive` is about that very process, `last_pass_at` may be of a dead one.

    `elsewhere` says why it cannot be seen from here, as on another machine; `alive` is then
    what its file tells.
    """

    alive: bool
    pid: int | None
    last_pass_at: float | None
    elsewhere: str | None = None


def observe_watcher(state_dir: str) -> Watcher:
    path = os.path.join(state_dir, "watch.lock")
    try:
        leader = ProcessId.parse(read_regular(path, limit=4096).decode())
        at = os.stat(path).st_mtime
    except (OSError, ValueError):
        return Watcher(False, None, None)
    match procfs.observe_process(leader):
        case Unknown(why):
            # By two clocks; a wrong answer costs a hint, or a start that `take` refuses.
            return Watcher(abs(time.time() - at) < SILENT_S, leader.pid, at, why)
        case fact:
            return Watcher(isinstance(fact, Alive), leader.pid, at)


def announce(state_dir: str, leader: ProcessId) -> None:
    """Say that this process leads, or is about to (its starter may say so for it)."""
    with open(os.path.join(state_dir, "watch.lock"), "r+b") as file:
        file.write(str(leader).encode())
        file.truncate()


def poke(state_dir: str) -> None:
    """Ask the watcher for a pass now; nobody there is no error."""
    with suppress(OSError):
        fd = os.open(os.path.join(state_dir, "watch.poke"), os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(fd, b".")
        finally:
            os.close(fd)


class Leadership:
    """The lock of the one watcher of a state directory, held until this process ends."""

    def __init__(self, lock: int, poked: int) -> None:
        self._lock = lock
        self.poked = poked

    @classmethod
    def take(cls, state_dir: str) -> Self | None:
        """Become the leader; None if another process is.

        Not every shared file system takes locks between machines: a leader that cannot be
        seen from here is believed as long as it goes on writing its passes.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(os.path.join(state_dir, "watch.lock"), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        if observe_watcher(state_dir).elsewhere and _is_written(lock):
            os.close(lock)
            return None
        path = os.path.join(state_dir, "watch.poke")
        with suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        taken = cls(lock, os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        taken.note_pass()
        return taken

    def note_pass(self) -> None:
        """Say again who leads, which sets the time too: a starter may have said otherwise."""
        text = str(procfs.identify_self()).encode()
        os.ftruncate(self._lock, os.pwrite(self._lock, text, 0))


def _is_written(file: int) -> bool:
    """Whether somebody writes into the file now, told by its own times, not by our clock."""
    until = time.monotonic() + LISTEN_S
    before = os.fstat(file).st_mtime_ns
    while time.monotonic() < until:
        time.sleep(LISTEN_S / 30)
        os.pread(file, 64, 0)  # makes a network file system look again
        if os.fstat(file).st_mtime_ns != before:
            return True
    return False
