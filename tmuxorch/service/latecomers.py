"""Who still writes into a worktree while it is being removed, and what they wrote."""

from __future__ import annotations

import os
from contextlib import suppress

from tmuxorch.adapters import processes
from tmuxorch.adapters.gitdir import git_dir
from tmuxorch.errors import CannotSave, NoRepository


class LateWork(CannotSave):
    """Something was written after the save, or may be at any moment."""


def now_ns(trash: str) -> int:
    """The time by the clock that stamps files where the worktree is, which may be a server's.

    0, to which everything is late, where there is no place for worktrees.
    """
    directory = os.path.dirname(trash)
    try:
        with suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        os.utime(directory)
        return os.stat(directory).st_ctime_ns
    except OSError:
        return 0


def refuse(moved: str, since_ns: int) -> None:
    """Raise LateWork if something in the directory is as new as that, or open for writing."""
    found = _changed_since(moved, since_ns) or _git_changed_since(moved, since_ns)
    if found:
        raise LateWork(f"{found} was written while it was being removed")
    if writers := processes.observe_writers_below(moved):
        raise LateWork(f"process {writers[0]} {writers[0].why}: end it, then try again")


def _changed_since(directory: str, since_ns: int) -> str | None:
    # A change of content, mode or name shows in the ctime, which nobody can set back.
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                # The save of a nested repository writes objects into it.
                if entry.name == "objects" and directory.endswith("/.git"):
                    continue
                changed = entry.stat(follow_symlinks=False).st_ctime_ns >= since_ns
                if changed and entry.name != ".git":
                    return entry.path
                if entry.is_dir(follow_symlinks=False):
                    found = _changed_since(entry.path, since_ns)
                    if found is not None:
                        return found
    except FileNotFoundError:
        return directory
    return None


def _git_changed_since(top: str, since_ns: int) -> str | None:
    """What was committed or staged meanwhile."""
    try:
        own = git_dir(top)
    except NoRepository:
        return None
    for name in ("HEAD", "index", "logs/HEAD"):
        with suppress(FileNotFoundError):
            if os.stat(f"{own}/{name}").st_ctime_ns >= since_ns:
                return f"{own}/{name}"
    return None
