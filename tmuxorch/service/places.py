"""Where worktrees are made, and where what is saved of them is kept."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxorch.errors import CannotSave

if TYPE_CHECKING:
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context

# A directory beside the worktrees, and by its being there the sign that their disk is mounted.
TRASH = ".trash"


def mark(worktree: str) -> None:
    """Make the directory that the worktree is to be in, and mark it as there."""
    os.makedirs(os.path.dirname(trash_of(worktree)), mode=0o700, exist_ok=True)


def trash_of(worktree: str, name: str = "_") -> str:
    """Where a worktree goes that is to be deleted: on the same disk."""
    return os.path.join(os.path.dirname(worktree), TRASH, name)


def seal(worktree: str) -> None:
    """Note that all is in place: files that are older than the worktree's `.git` are as made."""
    with suppress(OSError):
        os.utime(f"{worktree}/.git", follow_symlinks=False)


def check_gone(worktree: str) -> None:
    """Raise CannotSave unless the missing directory has gone from a place that is there."""
    if os.path.lexists(worktree):
        raise CannotSave(f"{worktree} is not the directory that was made there")
    parent = os.path.dirname(worktree)
    if not os.path.isdir(f"{parent}/{TRASH}"):
        raise CannotSave(
            f"{worktree} is not there, and nothing shows that {parent}, where it was made, is (a "
            f"disk that is not mounted?); if it has gone for good, say so with `mkdir -p "
            f"{parent}/{TRASH}`"
        )


def of_save(ctx: Context, agent: Agent) -> str:
    """The directory for a worker's save, on the file system that its worktree is on.

    There a worktree is saved by renaming it: at once, whole, and with the disk full.
    """
    state = os.path.join(ctx.state_dir, "archive")
    parent = os.path.dirname(agent.task.worktree)
    beside = os.path.join(parent, ".saved", agent.task.id)
    if os.path.lexists(beside):
        return beside
    os.makedirs(state, mode=0o700, exist_ok=True)
    there = os.path.isdir(parent) and os.stat(parent).st_dev != os.stat(state).st_dev
    return beside if there else os.path.join(state, agent.task.id)


def is_set_aside(ctx: Context, agent: Agent) -> bool:
    """Whether the worktree's files are where its save is to be, or in the trash."""
    beside = os.path.join(os.path.dirname(agent.task.worktree), ".saved", agent.task.id)
    saves = (os.path.join(ctx.state_dir, "archive", agent.task.id), beside)
    found = (*(f"{save}/files" for save in saves), trash_of(agent.task.worktree, agent.task.id))
    return any(os.path.lexists(path) for path in found)
