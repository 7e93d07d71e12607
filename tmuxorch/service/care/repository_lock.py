"""Holding a repository for a change of its worktrees or branches.

Whoever takes the lock first mends what a killed git left of ours in it. Records that do not say
where git keeps what belongs to their worktree learn it here, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tmuxorch import paths
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.admin import canonical, list_admins
from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.locks import flock, noted, read_cut
from tmuxorch.adapters.system.run import Timeout
from tmuxorch.errors import GitFailed, TmuxorchError
from tmuxorch.service.care import left_locks, wreckage

if TYPE_CHECKING:
    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.adapters.system.locks import Cut
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context

LOCK_TIMEOUT_S = 600.0


@contextmanager
def repo_lock(ctx: Context, repo_root: str, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold the repository; what a git that was killed left half made of ours is mended first."""
    paths.ensure_private(os.path.join(ctx.state_dir, "locks"))
    note = ctx.lock_note(repo_root)
    path = note.removesuffix(".busy") + ".lock"
    try:
        with flock(path, timeout_s=timeout_s):
            if _mend(ctx, repo_root, read_cut(note)):
                with suppress(FileNotFoundError):
                    os.unlink(note)
            with noted(note, str(procfs.identify_self())):
                yield
    except Timeout as e:
        raise GitFailed(f"{repo_root} is busy: {e}; try again") from e


def mend(ctx: Context, repo_root: str) -> None:
    """Clear away what a killed git left of ours; whoever holds the repository has done so."""
    with suppress(GitFailed), repo_lock(ctx, repo_root, timeout_s=0.0):
        pass


def _mend(ctx: Context, repo_root: str, cut: Cut | None) -> bool:
    """Mend what can be; False if something is left that another git may be using now.

    What cannot be mended stops nothing: git itself says so where it stands in the way.
    """
    repo = git.locate(repo_root)
    if repo is None:
        return True
    agents = ctx.store.agents(repo=repo_root)
    try:
        _note_admins(ctx, repo, agents)
        clear = left_locks.mend(ctx, repo, agents, cut)
        wreckage.mend(ctx, repo, agents)
    except (TmuxorchError, OSError) as failure:
        ctx.narrate(f"{repo_root} was not looked through for what a killed git left: {failure}")
        return False
    return clear


def _note_admins(ctx: Context, repo: Repo, agents: Sequence[Agent]) -> None:
    unnoted = [agent for agent in agents if agent.admin is None]
    if not unnoted:
        return
    known = {admin.path: admin.directory for admin in list_admins(repo)}
    for agent in unnoted:
        if (admin := known.get(canonical(agent.task.worktree))) is not None:
            ctx.store.note_admin(agent, admin)
