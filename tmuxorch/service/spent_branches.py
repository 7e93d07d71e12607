"""Branches that removed workers left because they held work, and that hold nothing now."""

from __future__ import annotations

from collections.abc import Iterator

from tmuxorch.adapters import git
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.context import Context
from tmuxorch.service.orphan import Action, Look, Orphan, Thing


def observe(look: Look) -> Iterator[Orphan]:
    """Only branches of our own making that nobody has moved, uses or has checked out."""
    in_use = {(agent.repo, agent.branch) for agent in look.agents.values()}
    in_use |= {(repo.root, worktree.branch or "") for repo, worktree in look.worktrees}
    seen = set()
    for entry in look.history.values():
        key = (entry.repo, entry.branch)
        repo = look.repos.get(entry.repo)
        if not entry.branch_made or key in seen or key in in_use or repo is None:
            continue
        seen.add(key)
        try:
            commit = git.branch_commit(repo, entry.branch)
            if commit is None or commit != entry.head_commit:
                continue
            main = git.list_worktrees(repo)[0].branch
            if entry.branch == main or not git.holds_nothing(repo, entry.branch):
                continue
        except TmuxorchError as unknown:
            look.ctx.narrate(f"{entry.branch} was not looked at: {unknown.message}")
            continue
        yield Orphan(
            Thing.BRANCH,
            f"{entry.name} left it, and every commit on it is elsewhere too",
            Action.REMOVE,
            id=entry.branch,
            repo=entry.repo,
            agent_id=entry.id,
        )


def clear(ctx: Context, orphan: Orphan) -> None:
    assert orphan.id is not None
    assert orphan.repo is not None
    repo = git.find_repo(orphan.repo)
    with ctx.repo_lock(orphan.repo):
        commit = git.branch_commit(repo, orphan.id)
        if commit is not None and git.holds_nothing(repo, orphan.id):
            git.delete_branch(repo, orphan.id, expected=commit)
