"""Doing once more what a killed git stood in the way of, on a repository that is mended first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tmuxorch.errors import GitKilled
from tmuxorch.service.care.repository_lock import mend

if TYPE_CHECKING:
    from collections.abc import Callable

    from tmuxorch.service.context import Context

    T = TypeVar("T")

TRIES = 3


def insist(ctx: Context, repo_root: str, step: Callable[[], T]) -> T:
    """What the step gives; it must be one that can be done again after it was cut off anywhere.

    Not while the repository's lock is held, which mending takes. GitKilled if gits go on dying.
    """
    for _ in range(TRIES - 1):
        try:
            return step()
        except GitKilled as killed:
            ctx.narrate(f"{killed.message}; trying again")
            mend(ctx, repo_root)
    return step()
