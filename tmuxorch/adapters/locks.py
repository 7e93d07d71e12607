"""Locks between processes: a kernel lock on a file that is never unlinked."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tmuxorch.adapters.run import Timeout


@contextmanager
def flock(path: str, *, timeout_s: float) -> Iterator[None]:
    """Hold the exclusive lock of `path`, whose directory must exist, for the block.

    The kernel releases it when the holder dies, however it dies. The file stays: to unlink
    it would let two holders in, one on the old inode and one on the new.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = 0.002
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise Timeout(f"the lock {path} was not free within {timeout_s:g} s") from None
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.05)
        yield
    finally:
        os.close(file)
