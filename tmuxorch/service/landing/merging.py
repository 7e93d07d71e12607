"""Bringing a worker's commits into its base branch, all of them or nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git import merges
from tmuxorch.adapters.git.changes import find_checkout
from tmuxorch.adapters.git.checkout import head_of
from tmuxorch.core.literal import literal
from tmuxorch.core.observation import Unknown
from tmuxorch.core.stake import describe
from tmuxorch.errors import CannotMerge, GitFailed, GitKilled, MergeConflict, WorkAtStake
from tmuxorch.model import EventKind, State
from tmuxorch.service.care.repository_lock import repo_lock
from tmuxorch.service.removal.work import observe_stake

if TYPE_CHECKING:
    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.adapters.git.merges import MergeSettings
    from tmuxorch.core.stake import Commit, Stake
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context

TITLE_MAX = 72
FILES_SHOWN = 20


class How(StrEnum):
    """What the base branch gets: the commits themselves, one for all, or a copy of each."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did; with `before` equal to `after`, all of `head` was there already."""

    agent: Agent
    base: str
    before: str
    after: str
    how: How
    commits: tuple[Commit, ...]
    head: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


def merge(
    ctx: Context,
    agent: Agent,
    *,
    how: How,
    message: str | None = None,
    into: str | None = None,
    commit: bool = False,
) -> Merged:
    """Bring the worker's commits into its base branch, or into the branch `into`.

    Uncommitted files refuse it; with `commit` they are committed first. `message` is for the one
    commit that is made. A checkout of the base is brought forward with it. Whatever is in the
    way is found before anything changes.
    """
    if agent.state in (State.CREATING, State.REMOVING):
        raise CannotMerge(f"{agent.task.name} is {agent.state}; nothing was merged")
    repo = git.find_repo(agent.task.repo)
    with repo_lock(ctx, agent.task.repo):
        base, before = _target(repo, agent, into)
        _check_committed(agent, commit=commit)
        if commit and os.path.isdir(agent.task.worktree):
            worktree = find_checkout(repo, agent.task.worktree, admin=agent.admin)
            if git.observe_status(worktree).entries:
                _check_possible(ctx, repo, agent, how, base, before)
                merges.commit_everything(worktree, message or _title(agent))
        head = _work(repo, agent)
        after, commits = _build(repo, agent, how, message, base, before, head)
        done = Merged(agent, base, before, after, how, commits, head)
        if done.changed:
            _advance(ctx, repo, done)
            why = f"{how}, {len(commits)} commits into {base}: {before[:10]}..{after[:10]}"
            ctx.store.record(agent, EventKind.MERGED, why)
    return done


def check_nothing_else_at_stake(done: Merged) -> None:
    """`WorkAtStake` if removing the worker would take more than what was merged."""
    agent, repo = done.agent, git.find_repo(done.agent.task.repo)
    if _work(repo, agent) != done.head:
        raise WorkAtStake(f"{agent.task.name} was kept: it has made new commits since the merge")
    stake = observe_stake(agent)
    if isinstance(stake, Unknown):
        raise WorkAtStake(f"{agent.task.name} was kept: what is in it cannot be told: {stake.why}")
    rest = describe(replace(stake, commits=()))
    if rest:
        raise WorkAtStake(
            f"{agent.task.name} was kept, because it holds more than was merged; look at it, or "
            f"save and remove it with `tmuxorch rm -y {agent.task.name}`\n  " + "\n  ".join(rest)
        )


# -- what stands in the way --------------------------------------------------------------


def _target(repo: Repo, agent: Agent, into: str | None) -> tuple[str, str]:
    """The branch to merge into and where it is."""
    base = into or agent.task.base
    before = git.branch_commit(repo, base)
    if before is not None and base != agent.task.branch:
        return base, before
    if base == agent.task.branch:
        what = f"{base} is its own branch"
    elif into is not None:
        what = f"there is no local branch {base} in {repo.root}"
    else:
        what = f"its base {base} is not a local branch of {repo.root}"
    raise CannotMerge(
        f"{agent.task.name} was not merged: {what}; choose a branch to merge into with --into"
    )


def _check_committed(agent: Agent, *, commit: bool) -> None:
    """Refuse while the worktree holds changes that a merge would leave behind."""
    stake = observe_stake(agent)
    if isinstance(stake, Unknown):
        raise CannotMerge(
            f"{agent.task.name} was not merged: whether all of its work is committed cannot be "
            f"told: {stake.why}"
        )
    if stake.operation:
        raise CannotMerge(
            f"{agent.task.name} was not merged: a {stake.operation} in {agent.task.worktree} is "
            "not finished; finish or abort it first"
        )
    loose = _uncommitted(stake)
    if not os.path.isdir(agent.task.worktree):
        loose = replace(loose, odd=())  # its commits are all there is to merge
    if commit:
        loose = replace(loose, staged=(), unstaged=(), untracked=())
    if lines := describe(loose):
        hint = "" if commit else ", or do it with --commit"
        raise CannotMerge(
            f"{agent.task.name} was not merged, because not all of its work is committed; tell it "
            f"to commit{hint}\n  " + "\n  ".join(lines)
        )


def _uncommitted(stake: Stake) -> Stake:
    loose = replace(stake, commits=(), dropped=(), stashes=(), operation=None)
    return replace(loose, ignored=(), processes=(), special=())


def _work(repo: Repo, agent: Agent) -> str:
    """The commit that holds all of the worker's commits, on its branch or wherever it went on."""
    tip = git.branch_commit(repo, agent.task.branch)
    head = None
    if os.path.isdir(agent.task.worktree):
        head, _ = head_of(find_checkout(repo, agent.task.worktree, admin=agent.admin).own)
    if head is None or head == tip:
        if tip is None:
            raise CannotMerge(
                f"{agent.task.name} was not merged: its branch {agent.task.branch} is gone, and so "
                "is its worktree"
            )
        return tip
    if tip is not None and not merges.is_ancestor(repo, tip, head):
        raise CannotMerge(
            f"{agent.task.name} was not merged: {agent.task.worktree} is at {head[:10]}, which "
            "lacks commits "
            f"of its branch {agent.task.branch}; check out there what is to be merged"
        )
    return head


def _check_possible(
    ctx: Context, repo: Repo, agent: Agent, how: How, base: str, before: str
) -> None:
    """Find what would refuse the merge before a commit is made for it."""
    _find_checkout(ctx, repo, agent, base)
    head = _work(repo, agent)
    _check_related(repo, agent, base, before, head)
    if merges.is_ancestor(repo, before, head):
        return
    if how is How.REBASE:
        merges.commits_to_replay(repo, before, head)
    if how is How.MERGE:
        _check_settings(agent, base, merges.read_merge_settings(repo))
    merges.merge_trees(repo, before, before)  # whether this git can


def _check_related(repo: Repo, agent: Agent, base: str, before: str, head: str) -> None:
    if not merges.share_history(repo, before, head):
        raise CannotMerge(f"{agent.task.name} was not merged: it shares no history with {base}")


def _check_settings(agent: Agent, base: str, settings: MergeSettings) -> None:
    if settings.fast_forward == "only":
        raise CannotMerge(
            f"{agent.task.name} was not merged: {base} has moved on and merge.ff allows no merge "
            "commit; use --rebase or --squash"
        )


# -- the new commits ---------------------------------------------------------------------


def _build(
    repo: Repo, agent: Agent, how: How, message: str | None, base: str, before: str, head: str
) -> tuple[str, tuple[Commit, ...]]:
    """Make what the base branch shall be at, and the commits that it gets in other words."""
    if merges.is_ancestor(repo, head, before):
        return before, ()
    _check_related(repo, agent, base, before, head)
    commits = merges.commits_between(repo, before, head)
    settings = merges.read_merge_settings(repo)
    forward = merges.is_ancestor(repo, before, head)
    try:
        if how is How.REBASE:
            if not forward:
                commits = merges.commits_to_replay(repo, before, head)
            after = head if forward else merges.replay(repo, before, commits, sign=settings.sign)
            return after, () if after == before else commits
        if how is How.MERGE and forward and settings.fast_forward != "no":
            return head, commits
        if how is How.MERGE:
            _check_settings(agent, base, settings)
        tree = merges.tree_of(repo, head) if forward else merges.merge_trees(repo, before, head)
        if tree == merges.tree_of(repo, before):  # squashed or rebased into it before
            return before, ()
    except MergeConflict as conflict:
        raise _conflict(agent, base, conflict) from conflict
    parents = (before, head) if how is How.MERGE else (before,)
    words = _message(repo, agent, how, message, commits)
    return merges.commit_tree(repo, tree, parents, words, sign=settings.sign), commits


def _conflict(agent: Agent, base: str, conflict: MergeConflict) -> MergeConflict:
    names = [literal(name) for name in conflict.files]
    more = [f"and {len(names) - FILES_SHOWN} more"] if len(names) > FILES_SHOWN else []
    lines = "\n  ".join([*names[:FILES_SHOWN], *more])
    return MergeConflict(
        f"{agent.task.name} conflicts with {base}, so {base} was left as it is; tell it to merge "
        f"{base} into its branch and to resolve:\n  {lines}",
        files=conflict.files,
    )


def _message(
    repo: Repo, agent: Agent, how: How, message: str | None, commits: tuple[Commit, ...]
) -> bytes:
    if message:
        return message.rstrip("\n").encode() + b"\n"
    if how is How.MERGE:
        return f"Merge branch '{agent.task.branch}'\n\n{_title(agent)}\n".encode()
    if len(commits) == 1:
        return merges.read_message(repo, commits[0].oid).rstrip(b"\n") + b"\n"
    listed = "\n".join(f"* {commit.title}" for commit in commits)
    return f"{_title(agent)}\n\n{listed}\n".encode()


def _title(agent: Agent) -> str:
    """The task's first line, short enough for a commit's title; its name if it has none."""
    title = agent.task.text.strip().partition("\n")[0].strip() or agent.task.name
    return title if len(title) <= TITLE_MAX else title[: TITLE_MAX - 1].rstrip() + "…"


# -- the branch --------------------------------------------------------------------------


def _advance(ctx: Context, repo: Repo, done: Merged) -> None:
    """Move the base branch, with its checkout if it has one, unless it has moved meanwhile."""
    checkout = _find_checkout(ctx, repo, done.agent, done.base)
    ctx.checkpoint("merge:built")
    try:
        if checkout is None:
            why = f"merge {done.agent.task.branch}: {done.how} by tmuxorch"
            merges.move_branch(repo, done.base, done.after, expected=done.before, why=why)
        else:
            merges.forward_checkout(checkout, done.base, done.after)
    except GitKilled as failure:
        raise GitKilled(f"{done.agent.task.name} was not merged: {failure.message}") from failure
    except GitFailed as failure:
        raise CannotMerge(f"{done.agent.task.name} was not merged: {failure.message}") from failure
    if git.branch_commit(repo, done.base) != done.after:
        raise GitFailed(f"{done.base} was moved by somebody else meanwhile; look at its log")


def _find_checkout(ctx: Context, repo: Repo, agent: Agent, base: str) -> str | None:
    """Where the base branch is checked out, if that may be brought forward."""
    name = agent.task.name
    found = merges.observe_checkouts(repo, base)
    if not found:
        return None
    if len(found) > 1:
        places = " and ".join(worktree.path for worktree in found)
        raise CannotMerge(f"{name} was not merged: {base} is checked out twice, in {places}")
    [worktree] = found
    path = worktree.path
    if worktree.branch is None:
        raise CannotMerge(
            f"{name} was not merged: {base} is being rebased in {path}; finish or abort that first"
        )
    if not os.path.isdir(path):
        raise CannotMerge(
            f"{name} was not merged: {base} is checked out in {path}, which is missing; if it is "
            "gone for good, `git worktree prune` makes git forget it"
        )
    for other in ctx.store.agents(repo=agent.task.repo):
        if other.task.worktree == path and other.state is State.RUNNING:
            raise CannotMerge(
                f"{name} was not merged: {base} is checked out by the running agent "
                f"{other.task.name}; "
                f"stop it first with `tmuxorch stop {other.task.name}`"
            )
    return path
