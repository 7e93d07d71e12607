"""Locks between processes: a kernel lock on a file that only its holder may unlink."""

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

    The kernel releases it when the holder dies, however it dies. The file stays; should its
    holder (a sweep) unlink it all the same, those who wait take the new one.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _wait_for(file, path, deadline, timeout_s)
            if _is_at(path, file):
                yield
                return
        finally:
            os.close(file)


def _wait_for(file: int, path: str, deadline: float, timeout_s: float) -> None:
    pause_s = 0.002
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Timeout(f"the lock {path} was not free within {timeout_s:g} s") from None
        else:
            return
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.05)


def _is_at(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False
