"""The lock files of git: an empty `….lock` beside what is being written, with no name in it."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch.core.literal import pasteable

if TYPE_CHECKING:
    from tmuxorch.adapters.git.location import Repo

LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class LockFile:
    path: str
    made_at: float
    inode: int
    uid: int


def list_locks(repo: Repo) -> list[LockFile]:
    """All of a repository: of its own files, of refs, and of its linked worktrees."""
    common = repo.common_dir
    below = (f"{common}/{name}" for name in ("refs", "reftable", "worktrees"))
    return [*locks_in(common), *(lock for top in below for lock in locks_in(top, below=True))]


def locks_in(directory: str, *, below: bool = False) -> list[LockFile]:
    """Those in one directory, and with `below` in all under it."""
    found: list[LockFile] = []
    left = [directory]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith(LOCK):
                        found += look_at(entry.path)
                    elif below and entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
    return sorted(found, key=lambda lock: lock.path)


def look_at(path: str) -> Iterator[LockFile]:
    """The lock at `path`, if there is one."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISREG(status.st_mode):
        yield LockFile(path, status.st_mtime, status.st_ino, status.st_uid)


def is_there(lock: LockFile) -> bool:
    """Whether it is still this very lock."""
    return lock in look_at(lock.path)


def drop_unfinished_refs(repo: Repo) -> str | None:
    """Delete a `packed-refs.new` that nobody is writing; its path, None if there is none.

    git writes it under `packed-refs.lock`, which is not a part of it: one that was killed leaves
    both, and with the lock gone every deletion of a ref fails on what is left. Whoever has the
    lock knows that it is nobody's.
    """
    path = f"{repo.common_dir}/packed-refs"
    if not os.path.lexists(f"{path}.new"):
        return None
    try:
        os.close(os.open(f"{path}{LOCK}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError:
        return None
    try:
        os.unlink(f"{path}.new")
    except FileNotFoundError:
        return None
    finally:
        os.unlink(f"{path}{LOCK}")
    return f"{path}.new"


def describe_lock(said: str) -> str:
    """Of the lock that git complains about: how old it is, and what a person can do."""
    for path in re.findall(r"'([^']+\.lock)'", said):
        for lock in look_at(path):
            age_s = max(0, int(time.time() - lock.made_at))
            old = f"{age_s} s" if age_s < 120 else f"{age_s // 60} min"
            how = pasteable(["rm", path])
            return f" It is {old} old; if no git is at work there, delete it with `{how}`"
    return ""
