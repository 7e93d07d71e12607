"""Branches that removed workers left because they held work, and that hold nothing now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.errors import TmuxorchError, sure
from tmuxorch.service.care.repository_lock import repo_lock
from tmuxorch.service.context import Context
from tmuxorch.service.sweep.orphan import Disposal, Look, Orphan, Thing

if TYPE_CHECKING:
    from tmuxorch.adapters.store.past import LeftBranch


def observe(look: Look) -> Iterator[Orphan]:
    """Only branches of our own making that nobody has moved, uses or has checked out."""
    in_use = {(agent.task.repo, agent.task.branch) for agent in look.agents.values()}
    in_use |= {(repo.root, worktree.branch or "") for repo, worktree in look.worktrees}
    left: dict[str, dict[str, LeftBranch]] = {}
    for found in look.ctx.store.past.left_branches():
        if (found.repo, found.branch) not in in_use:
            left.setdefault(found.repo, {})[found.branch] = found
    for root, branches in left.items():
        repo = look.repos.get(root)
        if repo is None:
            continue
        try:
            branches.pop(git.list_worktrees(repo)[0].branch or "", None)
            spent = git.holding_nothing(repo, {b: f.commit for b, f in branches.items()})
        except TmuxorchError as unknown:
            look.ctx.narrate(f"the branches of {root} were not looked at: {unknown.message}")
            continue
        for branch in sorted(spent):
            yield Orphan(
                Thing.BRANCH,
                f"{branches[branch].name} left it, and every commit on it is elsewhere too",
                Disposal.REMOVE,
                id=branch,
                repo=root,
                agent_id=branches[branch].agent_id,
            )


def clear(ctx: Context, orphan: Orphan) -> None:
    branch = sure(orphan.id, "a branch was found by its name")
    root = sure(orphan.repo, "a branch is in a repository")
    repo = git.find_repo(root)
    with repo_lock(ctx, root):
        commit = git.branch_commit(repo, branch)
        if commit is not None and git.holds_nothing(repo, branch):
            git.delete_branch(repo, branch, expected=commit)
