"""Locks between processes: a kernel lock on a file that only its holder may unlink."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tmuxorch.adapters.system.run import Timeout
from tmuxorch.errors import GitKilled


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


class Cut(NamedTuple):
    """That the last holder of a lock died while it held it: who, and since when it did."""

    who: str
    since: float


def read_cut(note: str) -> Cut | None:
    """What is noted there; to be asked by the lock's holder, before it notes itself."""
    try:
        return Cut(os.readlink(note), os.lstat(note).st_mtime)
    except OSError:
        return None


@contextmanager
def noted(note: str, who: str) -> Iterator[None]:
    """Note for the block who holds the lock; what is noted there already stays.

    It is a link to nowhere, because that is made at once and whole, also in a power cut. A
    full disk is no reason not to go on. If a git was killed meanwhile it stays, as if the
    holder had died: what that git left is for the next holder to mend.
    """
    made = False
    with suppress(OSError):
        os.symlink(who, note)
        made = True
    try:
        yield
    except GitKilled:
        made = False
        raise
    finally:
        if made:
            with suppress(OSError):
                os.unlink(note)


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
