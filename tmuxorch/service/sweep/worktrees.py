"""Worktrees that nobody owns: no record, no directory, not known to git, or never finished."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.git.worktrees import HALF_MADE, Worktree
from tmuxorch.adapters.system import procfs
from tmuxorch.core import naming
from tmuxorch.core.literal import pasteable
from tmuxorch.core.observation import Dead
from tmuxorch.core.stake import Stake
from tmuxorch.errors import BadName, sure
from tmuxorch.model import Agent, AgentId, Kind, Reason, Run, State, Status, Task
from tmuxorch.service.context import Context
from tmuxorch.service.removal import removal
from tmuxorch.service.removal.work import observe_stake
from tmuxorch.service.sweep.orphan import Disposal, Look, Orphan, Thing, busy, size_of
from tmuxorch.service.workers.visibility import why_unseen

OURS = "tmuxorch/"
ENDED = (State.EXITED, State.LOST, State.QUARANTINED)


def observe(look: Look) -> Iterator[Orphan]:
    """All of them; what a live process works in is kept, what holds work is to be saved."""
    for agent in look.agents.values():
        yield from _recorded(look, agent)
    known = {os.path.realpath(agent.task.worktree) for agent in look.agents.values()}
    listed = set()
    for repo, worktree in look.worktrees:
        listed.add(os.path.realpath(worktree.path))
        if os.path.realpath(worktree.path) not in known:
            yield from _unrecorded(look, repo, worktree)
    for path in look.directories:
        if os.path.realpath(path) not in known | listed and not look.is_claimed(path):
            yield _unknown_to_git(look, path)


def _recorded(look: Look, agent: Agent) -> Iterator[Orphan]:
    """A record whose owner died at work, or whose directory has gone."""
    found = Orphan(
        Thing.WORKTREE,
        "",
        Disposal.REMOVE,
        path=agent.task.worktree,
        repo=agent.task.repo,
        agent_id=agent.task.id,
    )
    missing = not os.path.lexists(agent.task.worktree)
    if agent.state in (State.CREATING, State.REMOVING):
        owner_dead = agent.owner is None or isinstance(procfs.observe_process(agent.owner), Dead)
        if owner_dead:
            doing = "creation" if agent.state is State.CREATING else "removal"
            reason = f"the {doing} of {agent.task.name} was cut off"
            yield _judged(look, replace(found, reason=reason), agent)
    elif missing and agent.state in ENDED:
        reason = f"the directory of {agent.task.name} is gone"
        if os.path.isdir(os.path.dirname(os.path.dirname(agent.task.worktree))):
            yield _judged(look, replace(found, reason=reason), agent)
        else:  # a disk that is not mounted looks like this
            where = "so is the place it was made in: is a disk missing?"
            yield replace(found, reason=f"{reason}, and {where}", action=Disposal.KEEP)


def _unrecorded(look: Look, repo: Repo, worktree: Worktree) -> Iterator[Orphan]:
    reason = worktree.locked_reason or ""
    own = f"tmuxorch:{look.ctx.store.id}:"
    if reason.startswith(own) and not look.is_recorded(reason.removeprefix(own)):
        why = "it carries our mark and no worker has it"
    elif reason == HALF_MADE and look.is_in_our_root(worktree.path):
        if look.is_claimed(worktree.path):
            return
        why = "git was killed while it made it"
    else:
        return
    found = Orphan(Thing.WORKTREE, why, Disposal.REMOVE, path=worktree.path, repo=repo.root)
    yield _judged(look, found, adopted(look.ctx, repo, worktree))


def _judged(look: Look, found: Orphan, agent: Agent) -> Orphan:
    """With its size, and with what may be done: nothing while somebody works in it."""
    if not os.path.isdir(agent.task.worktree):
        return replace(found, bytes=0)
    found = replace(found, bytes=size_of(agent.task.worktree))
    if users := look.users_of(agent.task.worktree) or look.serving(agent.task.id):
        return replace(found, action=Disposal.KEEP, reason=f"{found.reason}; {busy(users)}")
    if unseen := why_unseen(look.ctx, agent):
        reason = f"{found.reason}; whether its process lives cannot be seen from here: {unseen}"
        return replace(found, action=Disposal.KEEP, reason=reason)
    if git.locate(agent.task.repo) is None:
        reason = f"{found.reason}; its repository is gone"
        return replace(found, action=Disposal.KEEP, reason=reason)
    stake = observe_stake(agent)
    # What cannot be looked at is not known to be without work.
    is_empty = isinstance(stake, Stake) and stake.empty
    return found if is_empty else replace(found, action=Disposal.SALVAGE)


def _unknown_to_git(look: Look, path: str) -> Orphan:
    why = "no repository knows this directory in our root"
    found = Orphan(Thing.WORKTREE, why, Disposal.KEEP, path=path, bytes=size_of(path))
    if users := look.users_of(path):
        return replace(found, reason=f"{why}; {busy(users)}")
    if os.listdir(path):
        how = "look at it, and delete it yourself if you do not need it"
        return replace(found, reason=f"{why}; {how}", command=pasteable(["rm", "-r", path]))
    return replace(found, action=Disposal.REMOVE, reason=f"{why}, and it is empty")


def adopted(ctx: Context, repo: Repo, worktree: Worktree) -> Agent:
    """A record for a worktree that has none, as one that is being swept by us."""
    marked = (worktree.locked_reason or "").rpartition(":")[2]
    is_id = len(marked) == 12 and set(marked) <= set("0123456789abcdef")
    agent_id = AgentId(marked if is_id else os.urandom(6).hex())
    taken = {agent.task.name for agent in ctx.store.agents(repo=repo.root)}
    name = os.path.basename(worktree.path).rpartition("-")[0]
    try:
        name = naming.check_name(name)
    except BadName:
        name = naming.FALLBACK_NAME
    branch = worktree.branch or f"{OURS}{name}"
    now = ctx.clock()
    task = Task(
        id=agent_id,
        name=naming.unique_name(name, taken),
        repo=repo.root,
        text="",
        agent="",
        kind=Kind.WORKER,
        branch=branch,
        branch_made=branch.startswith(OURS),
        base="",
        base_commit=_base_commit(repo, worktree),
        worktree=worktree.path,
        created_at=now,
    )
    return Agent(
        task,
        Run(ctx.socket, ended_at=now),
        state=State.REMOVING,
        status=Status.REMOVING,
        owner=procfs.identify_self(),
        reason=Reason.SWEPT,
    )


def _base_commit(repo: Repo, worktree: Worktree) -> str:
    """What the main worktree has: work is what goes beyond that."""
    done = git.git(repo.root, "rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1, 128))
    return done.stdout.decode().strip() or worktree.head or "0" * 40


def clear(ctx: Context, orphan: Orphan) -> None:
    """Take it away by the one removal path, which saves first; an empty directory just goes."""
    path = sure(orphan.path, "a worktree was found by its path")
    if orphan.repo is None:
        os.rmdir(path)
        return
    agent = ctx.store.agent(orphan.agent_id) if orphan.agent_id else None
    if agent is None:
        repo = git.find_repo(orphan.repo)
        listed = [w for w in git.list_worktrees(repo)[1:] if w.path == path]
        if not listed:
            return
        agent = adopted(ctx, repo, listed[0])
        ctx.store.add(agent)
        ctx.checkpoint("sweep:adopted")
    reason = Reason.CREATE_FAILED if agent.state is State.CREATING else Reason.SWEPT
    removal.remove(ctx, agent, reason=reason)
