"""Bringing a removed worker back: branch, worktree, files, and its conversation."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.worktrees import find_admin_dir
from tmuxorch.adapters.store.saves import read_manifest
from tmuxorch.adapters.system import procfs
from tmuxorch.core import naming
from tmuxorch.errors import (
    CannotRestore,
    CannotSave,
    GitFailed,
    NameTaken,
    NoRepository,
)
from tmuxorch.model import Agent, AgentId, EventKind, Milestone, Run, State, Status, Step
from tmuxorch.service import places
from tmuxorch.service.care.repository_lock import repo_lock
from tmuxorch.service.removal import legacy_saves, putting_back, removal
from tmuxorch.service.workers import running

if TYPE_CHECKING:
    from collections.abc import Callable

    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.config import Config
    from tmuxorch.model import HistoryEntry
    from tmuxorch.service.context import Context

_NAME_TRIES = 20


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where the work is, and what it becomes; nothing has been made yet."""

    repo: Repo
    commit: str
    agent: Agent


def restore(
    ctx: Context,
    config: Config,
    entry: HistoryEntry,
    *,
    name: str | None = None,
    start: bool = False,
    on_output: Callable[[bytes], None] | None = None,
) -> Agent:
    """Make a worker again as it was when it was removed, ended unless `start`.

    It is a new agent with an id of its own, under the old name and in the old place where
    those are free. The save stays, so it can be restored again. A failure leaves nothing but
    the save; if only the start fails, the restored worker stays.
    """
    if legacy_saves.is_old(entry):
        entry = _converted(ctx, entry)
    plan = _record(ctx, entry, name)
    agent = plan.agent
    try:
        ctx.checkpoint("restore:recorded")
        admin = _bring_back(ctx, plan, entry, on_output)
        ctx.checkpoint("restore:worktree")
        agent = ctx.store.finish_restore(agent, entry, admin=admin, at=ctx.clock())
    except BaseException as failure:
        removal.take_back(ctx, agent, failure, EventKind.RESTORE_FAILED)
        raise
    ctx.checkpoint("restore:restored")
    _tell(ctx, entry, agent)
    return running.restart(ctx, config, agent, fresh=False) if start else agent


def _converted(ctx: Context, entry: HistoryEntry) -> HistoryEntry:
    _repository(entry)
    try:
        return legacy_saves.convert(ctx, entry)
    except CannotSave as error:
        raise CannotRestore(f"{entry.task.name} cannot be restored: {error.message}") from error


def _record(ctx: Context, entry: HistoryEntry, name: str | None) -> _Plan:
    """Answer every question and write the intent; a name taken meanwhile is chosen anew."""
    for _ in range(_NAME_TRIES):
        plan = _plan(ctx, entry, name)
        ctx.make_room(plan.agent.task.worktree)
        try:
            ctx.store.add(plan.agent)
        except NameTaken:
            if name is not None:
                raise
        else:
            return plan
    raise NameTaken(f"no free name was found to restore {entry.task.name}; choose one with -n")


def _plan(ctx: Context, entry: HistoryEntry, name: str | None) -> _Plan:
    repo = _repository(entry)
    commit = _start_commit(repo, entry)
    agents = ctx.store.agents()
    taken = {agent.task.name for agent in agents if agent.task.repo == entry.task.repo}
    if name is None:
        name = naming.unique_name(entry.task.name, taken)
    elif naming.check_new_name(name) in taken:
        raise NameTaken(f"the name {name!r} is taken in {entry.task.repo}; choose another with -n")
    branch, made = _choose_branch(repo, entry, commit)
    is_there = git.branch_commit(repo, branch) is not None
    agent_id = AgentId(os.urandom(6).hex())
    worktree = entry.task.worktree
    # In its old place an agent finds its conversations again, which many keep by directory.
    if os.path.lexists(worktree) or worktree in {agent.task.worktree for agent in agents}:
        worktree = naming.worktree_path(ctx.worktrees_dir, entry.task.repo, name, agent_id)
    task = replace(
        entry.task,
        id=agent_id,
        name=name,
        branch=branch,
        branch_made=made,
        worktree=worktree,
        created_at=ctx.clock(),
    )
    agent = Agent(
        task,
        Run(ctx.socket, exit=entry.exit, stopped=True),
        state=State.CREATING,
        status=Status.STARTING,
        owner=procfs.identify_self(),
        step=Step(Milestone.RESTORING, entry.task.id),
        keep_branch=is_there,
    )
    return _Plan(repo, commit, agent)


def _repository(entry: HistoryEntry) -> Repo:
    try:
        return git.find_repo(entry.task.repo)
    except NoRepository:
        raise CannotRestore(
            f"{entry.task.name} cannot be restored: its repository {entry.task.repo} is gone; "
            "bring that back first"
        ) from None


def _start_commit(repo: Repo, entry: HistoryEntry) -> str:
    """Where the branch was; CannotRestore if that is not in the repository any more."""
    commit = entry.head_commit or entry.task.base_commit
    if entry.archive is not None:
        if not os.path.exists(entry.archive):
            raise CannotRestore(
                f"{entry.task.name} cannot be restored: what was saved of it in {entry.archive} is "
                "gone"
            )
        manifest = read_manifest(entry.archive)
        commit = putting_back.branch_start(manifest, entry.task.branch, entry.task.base_commit)
    try:
        git.git(repo.root, "cat-file", "-e", f"{commit}^{{commit}}")
    except GitFailed as error:
        raise CannotRestore(
            f"{entry.task.name} cannot be restored: what was saved of it is no longer in "
            f"{entry.task.repo} "
            f"({error.message})"
        ) from error
    return commit


def _choose_branch(repo: Repo, entry: HistoryEntry, commit: str) -> tuple[str, bool]:
    """The branch to restore on, and whether it is ours to take away again.

    The old one if it is where it was, or gone, and nobody has it checked out; else the next
    free one, so that what became of the old one stays as it is.
    """
    in_use = {worktree.branch for worktree in git.list_worktrees(repo)}
    now = git.branch_commit(repo, entry.task.branch)
    if now is None:
        return entry.task.branch, True
    if now == commit and entry.task.branch not in in_use:
        return entry.task.branch, entry.task.branch_made
    branch, n = entry.task.branch, 1
    while git.branch_commit(repo, branch) is not None:
        n += 1
        branch = f"{entry.task.branch}-{n}"
    return branch, True


def _bring_back(
    ctx: Context, plan: _Plan, entry: HistoryEntry, on_output: Callable[[bytes], None] | None
) -> str | None:
    """Make the worktree; returns git's directory for it."""
    agent = plan.agent
    marker = {"TMUXORCH_AGENT_ID": agent.task.id}
    reason = ctx.lock_reason(agent)
    places.mark(agent.task.worktree)
    with repo_lock(ctx, agent.task.repo):
        if entry.archive is None:
            git.add_worktree(
                plan.repo,
                agent.task.worktree,
                branch=agent.task.branch,
                new_branch=git.branch_commit(plan.repo, agent.task.branch) is None,
                commit=plan.commit,
                reason=reason,
                marker=marker,
                on_output=on_output,
            )
        else:
            left = putting_back.restore(
                plan.repo,
                entry.archive,
                agent.task.worktree,
                was=entry.task.branch,
                base=entry.task.base_commit,
                branch=agent.task.branch,
                reason=reason,
                marker=marker,
                on_output=on_output,
            )
            if left:
                ctx.narrate(f"not brought back, for no save can: {', '.join(left[:5])}")
    # Copies of a worker without a save are made once more.
    if agent.task.copied and entry.archive is None and not plan.repo.bare:
        git.copy_into_worktree(
            agent.task.repo, agent.task.worktree, git.as_patterns(agent.task.copied)
        )
    return find_admin_dir(plan.repo, agent.task.worktree)


def _tell(ctx: Context, entry: HistoryEntry, agent: Agent) -> None:
    """Say what is otherwise than it was."""
    if agent.task.name != entry.task.name:
        ctx.narrate(f"the name {entry.task.name} is taken; it is now called {agent.task.name}")
    if agent.task.branch != entry.task.branch:
        ctx.narrate(
            f"the branch {entry.task.branch} has moved on or is checked out elsewhere and stays as "
            f"it is; the work is on {agent.task.branch}"
        )
