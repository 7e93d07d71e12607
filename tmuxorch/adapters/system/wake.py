"""Sleep until a process ends, something can be read, or time is up; events only wake, looks tell.

Where there are no pidfds (macOS, old kernels) the deaths of processes do not wake anybody and
the regular pass finds them.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxorch.adapters.system import procfs
from tmuxorch.core.observation import Alive
from tmuxorch.model import ProcessId

if TYPE_CHECKING:
    from collections.abc import Iterable


class Wake:
    """A set of processes and descriptors to be woken by."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._pidfds: dict[ProcessId, int] = {}
        self._owners: dict[int, ProcessId] = {}
        self._readable: set[int] = set()
        self._ended: set[ProcessId] = set()

    def follow(self, processes: Iterable[ProcessId]) -> None:
        """Be woken by the end of exactly these, which were alive a moment ago."""
        wanted = set(processes)
        for process in self._pidfds.keys() - wanted:
            self._forget(process)
        for process in wanted - self._pidfds.keys():
            try:
                pidfd = os.pidfd_open(process.pid)
            except (OSError, AttributeError):
                pidfd = -1
            # Looked at after it was opened: alive now, so it is what was opened.
            if not isinstance(procfs.observe_process(process), Alive):
                self._ended.add(process)
                if pidfd >= 0:
                    os.close(pidfd)
            elif pidfd >= 0:
                self._pidfds[process] = pidfd
                self._owners[pidfd] = process
                self._poll.register(pidfd, select.POLLIN)

    def listen(self, fds: Iterable[int]) -> None:
        """Be woken when one of exactly these can be read."""
        wanted = set(fds)
        for fd in self._readable - wanted:
            with suppress(KeyError, OSError, ValueError):
                self._poll.unregister(fd)
        for fd in wanted - self._readable:
            self._poll.register(fd, select.POLLIN)
        self._readable = wanted

    def wait(self, timeout_s: float) -> tuple[set[ProcessId], set[int]]:
        """The processes that have ended, each told once, and the descriptors that can be read."""
        ended, self._ended = self._ended, set()
        readable = set()
        until = time.monotonic() + (0.0 if ended else max(0.0, timeout_s))
        for fd, _ in self._poll.poll(max(0.0, until - time.monotonic()) * 1000):
            if fd in self._owners:
                ended.add(self._owners[fd])
                self._forget(self._owners[fd])
            else:
                readable.add(fd)
        return ended, readable

    def close(self) -> None:
        for process in list(self._pidfds):
            self._forget(process)

    def _forget(self, process: ProcessId) -> None:
        pidfd = self._pidfds.pop(process)
        del self._owners[pidfd]
        self._poll.unregister(pidfd)
        os.close(pidfd)
