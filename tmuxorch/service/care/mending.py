"""Whoever takes a repository's lock first mends what a killed git left of ours in it.

Records that do not say where git keeps what belongs to their worktree learn it here, too.
"""

from __future__ import annotations

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.admin import canonical, list_admins
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.care import left_locks, wreckage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.adapters.system.locks import Cut
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context


def mend(ctx: Context, repo_root: str, cut: Cut | None) -> bool:
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
        if (admin := known.get(canonical(agent.worktree))) is not None:
            ctx.store.note_admin(agent, admin)
