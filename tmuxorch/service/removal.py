"""Removing a worker: the one path that a person, a failed creation and the watcher share.

Each step first looks whether it is already done, so a removal that was cut off at any
point is carried on by whoever comes next.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

from tmuxorch import shim
from tmuxorch.adapters import git, processes, procfs, rundir
from tmuxorch.adapters.holding import is_held
from tmuxorch.core.observation import Alive, Dead
from tmuxorch.core.view import exit_of
from tmuxorch.errors import (
    CannotSave,
    NoRepository,
    StateConflict,
    TmuxFailed,
    TmuxorchError,
    TmuxTimeout,
)
from tmuxorch.model import HistoryEntry, Reason, State, Status
from tmuxorch.service import latecomers, looking, salvage, stake
from tmuxorch.service.latecomers import LateWork
from tmuxorch.service.whereabouts import recorded_processes, refuse_unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmuxorch.adapters.git import Repo
    from tmuxorch.adapters.processes import Member
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context
    from tmuxorch.service.salvage import Saved
    from tmuxorch.service.stake import Stake

SCREEN_LINES = 200
SCREEN_BYTES = 64 * 1024
BURIED = "buried"
LATE_TRIES = 3


def observe_stake(agent: Agent) -> Stake | None:
    """What removing the agent would lose; None if its repository is gone."""
    repo = _repository(agent)
    if repo is None:
        return None
    strangers = tuple(str(member) for member in _strangers(agent))
    return replace(_observe_work(repo, agent), processes=strangers)


def _observe_work(repo: Repo, agent: Agent) -> Stake:
    return stake.observe_stake(
        repo,
        agent.worktree,
        branch=agent.branch,
        branch_made=agent.branch_made,
        base_commit=agent.base_commit,
        copied=agent.copied,
    )


def _strangers(agent: Agent) -> tuple[Member, ...]:
    """Who works in the worktree and is not the agent's."""
    users = processes.observe_users_of(agent.worktree)
    if not users:
        return ()
    family = processes.find_family(
        agent_id=agent.id,
        roots=tuple(p for p in (agent.shim, agent.process) if p is not None),
        worktree=agent.worktree,
        since_ticks=agent.shim.ticks if agent.shim is not None else None,
    )
    own = {member.process for member in family}
    inside = any(processes.is_ancestor_of_us(p.pid) for p in (agent.shim, agent.process) if p)
    if inside:  # the family as this command sees it leaves out what the command hangs from
        users = tuple(u for u in users if not processes.is_ancestor_of_us(u.process.pid))
    return tuple(user for user in users if user.process not in own)


def remove(
    ctx: Context,
    agent: Agent,
    *,
    reason: Reason,
    keep_branch: bool = False,
    grace_s: float = 2.0,
    cap_bytes: int = 256_000_000,
) -> HistoryEntry:
    """Save, record and remove; the history entry is all that stays.

    What cannot be saved is not deleted: the agent becomes `quarantined` and `CannotSave`
    says why.
    """
    refuse_from_inside(agent)
    refuse_unseen(ctx, agent)
    # Before anything is claimed: a tmux that does not answer leaves the agent as it is.
    save_screen(ctx, agent)
    agent = _claim(ctx, agent, reason, keep_branch)
    ctx.checkpoint("remove:claimed")
    since_ns = 0  # of what another command saved, nobody knows when it looked
    if agent.step != BURIED:
        end(ctx, agent, grace_s)
        since_ns = latecomers.now_ns(_trash(agent))
        agent = _bury(ctx, agent, cap_bytes)
    _clear_away(ctx, agent, cap_bytes, since_ns)
    entry = ctx.store.history_entry(agent.id)
    assert entry is not None, "the row was written before anything was cleared away"
    return entry


def _claim(ctx: Context, agent: Agent, reason: Reason, keep_branch: bool) -> Agent:
    """Take the agent for removal, from its owner too if that one has died."""
    me = procfs.identify_self()
    if agent.owner is not None and agent.owner != me:
        dead = isinstance(procfs.observe_process(agent.owner), Dead)
        if not dead:
            doing = "removed" if agent.state is State.REMOVING else "made"
            raise StateConflict(
                f"{agent.name} is being {doing} by pid {agent.owner.pid}; wait for it to finish"
            )
    if agent.state is State.REMOVING:
        return ctx.store.swap(agent, expect=[State.REMOVING], owner=me)
    return ctx.store.swap(
        agent,
        expect=[agent.state],
        what="removing",
        why=f"reason: {reason}",
        state=State.REMOVING,
        status=Status.REMOVING,
        owner=me,
        reason=reason,
        keep_branch=keep_branch or agent.keep_branch,
        step="",
    )


def save_screen(ctx: Context, agent: Agent) -> None:
    tmux = ctx.tmux(agent.socket)
    pane = tmux.find_pane(agent.id)
    if pane is None:
        return
    try:
        text = tmux.capture(pane.place.pane, lines=SCREEN_LINES)
    except TmuxFailed:
        return  # closed between the two calls: the screen is gone, an earlier one may be kept
    rundir.save_screen(ctx.run_dir(agent.id), trim_screen(text))


def end(ctx: Context, agent: Agent, grace_s: float) -> None:
    """End every process of the agent and see it dead, then close what is left of its window.

    `CannotSee`, with nothing touched, where its processes cannot be seen. A tmux server that
    does not answer now finds the pane without a process later, and closes it by itself.
    """
    refuse_unseen(ctx, agent)
    ctx.narrate(f"ending {agent.name}")
    tmux = ctx.tmux(agent.socket)
    # Those of another machine or namespace were seen dead there, or we would have refused.
    roots = tuple(filter(procfs.is_here, recorded_processes(ctx, agent)))
    processes.end_family(
        agent_id=agent.id,
        roots=roots,
        worktree=agent.worktree,
        since_ticks=roots[0].ticks if roots else None,
        grace_s=grace_s,
    )
    rundir.note_over(ctx.run_dir(agent.id), run=agent.restarts)
    ctx.checkpoint("remove:ended")
    with suppress(TmuxTimeout):
        pane = tmux.find_pane(agent.id)
        keepers = roots or (None,)
        if pane is not None and any(is_held(pane, k, ctx.run_dir(agent.id)) for k in keepers):
            tmux.close_pane(pane)
        elif pane is not None:
            tmux.disown_pane(pane)
    ctx.checkpoint("remove:closed")


def _bury(ctx: Context, agent: Agent, cap_bytes: int) -> Agent:
    """Save the work, then end the agent and write its history in one transaction."""
    repo = _repository(agent)
    saved, stats = None, None
    if repo is not None:
        try:
            saved = _save(ctx, repo, agent, cap_bytes)
            if os.path.isdir(agent.worktree):
                stats = git.work_stats(repo, agent.worktree, agent.base_commit)
        except TmuxorchError as e:
            raise _quarantined(ctx, agent, e) from e
    elif os.path.lexists(agent.worktree):
        why = CannotSave(f"its repository {agent.repo} is gone, so its files cannot be saved")
        raise _quarantined(ctx, agent, why)
    ctx.checkpoint("remove:saved")
    ended = looking.read_exit(ctx.state_dir, agent)
    now = ctx.clock()
    entry = HistoryEntry(
        id=agent.id,
        name=agent.name,
        repo=agent.repo,
        task=agent.task,
        agent=agent.agent,
        branch=agent.branch,
        base=agent.base,
        base_commit=agent.base_commit,
        head_commit=stats.head_commit if stats else None,
        reason=agent.reason or Reason.USER,
        exit=agent.exit or exit_of(ended),
        created_at=agent.created_at,
        removed_at=now,
        duration_s=max(0.0, (agent.ended_at or now) - agent.created_at),
        commits=stats.commits if stats else None,
        files_changed=stats.files_changed if stats else None,
        insertions=stats.insertions if stats else None,
        deletions=stats.deletions if stats else None,
        salvage_ref=saved.ref if saved else None,
        archive=saved.archive if saved else None,
        branch_kept=repo is not None and not _branch_goes(repo, agent),
        restored_at=None,
        last_screen=rundir.read_screen(ctx.run_dir(agent.id)),
        kind=agent.kind,
        command=agent.command,
        conversation=agent.conversation,
        worktree=agent.worktree,
        branch_made=agent.branch_made and not agent.keep_branch,
        copied=agent.copied,
    )
    agent = ctx.store.bury(agent, entry, step=BURIED)
    ctx.checkpoint("remove:buried")
    return agent


def _save(ctx: Context, repo: Repo, agent: Agent, cap_bytes: int) -> Saved | None:
    """Save what is at stake; None if nothing is."""
    lost = _observe_work(repo, agent)
    if lost.empty:
        return None
    ctx.narrate(f"saving the work of {agent.name}")
    return salvage.save(
        repo,
        agent.worktree,
        agent.id,
        lost,
        archive_dir=os.path.join(ctx.state_dir, "archive"),
        cap_bytes=cap_bytes,
        marker={"TMUXORCH_AGENT_ID": agent.id},
    )


def _clear_away(ctx: Context, agent: Agent, cap_bytes: int, since_ns: int) -> None:
    """Everything is saved and recorded: take worktree, branch, files and row away."""
    repo = _repository(agent)
    if repo is not None:
        _clear_worktree(ctx, repo, agent, cap_bytes, since_ns)
        ctx.checkpoint("remove:worktree")
        with ctx.repo_lock(agent.repo):
            commit = git.branch_commit(repo, agent.branch)
            if commit is not None and _branch_goes(repo, agent):
                git.delete_branch(repo, agent.branch, expected=commit)
    ctx.checkpoint("remove:branch")
    rundir.remove(ctx.run_dir(agent.id))
    ctx.checkpoint("remove:files")
    ctx.store.forget(agent)


def _clear_worktree(ctx: Context, repo: Repo, agent: Agent, cap_bytes: int, since_ns: int) -> None:
    """Move the worktree away; what was written after the save is saved as well, or it stays."""

    def last_look(moved: str) -> None:
        ctx.checkpoint("remove:moved")
        latecomers.refuse(moved, since_ns)

    for attempt in range(LATE_TRIES + 1):
        try:
            with ctx.repo_lock(agent.repo):
                git.remove_worktree(
                    repo,
                    agent.worktree,
                    reason=ctx.lock_reason(agent),
                    trash=_trash(agent),
                    check=last_look,
                    background=True,
                )
        except LateWork as late:
            if attempt == LATE_TRIES:
                raise _kept(ctx, agent, late) from late
        else:
            return
        since_ns = latecomers.now_ns(_trash(agent))
        try:
            saved = _save(ctx, repo, agent, cap_bytes)
        except TmuxorchError as error:
            raise _kept(ctx, agent, error) from error
        if saved is not None:
            ctx.store.amend_history(agent.id, salvage_ref=saved.ref, archive=saved.archive)
        ctx.checkpoint("remove:saved-again")


def _trash(agent: Agent) -> str:
    return os.path.join(os.path.dirname(agent.worktree), ".trash", agent.id)


def _kept(ctx: Context, agent: Agent, why: TmuxorchError) -> CannotSave:
    """Take the removal back: what cannot be saved is not deleted, and has no history yet."""
    ctx.store.unbury(agent, why.message)
    return _not_removed(agent, why)


def _branch_goes(repo: Repo, agent: Agent) -> bool:
    """Only a branch of our own making that holds nothing another ref lacks is dropped."""
    if not agent.branch_made or agent.keep_branch:
        return False
    commit = git.branch_commit(repo, agent.branch)
    return commit is None or git.holds_nothing(repo, agent.branch)


def _quarantined(ctx: Context, agent: Agent, why: TmuxorchError) -> CannotSave:
    ctx.store.swap(
        agent,
        expect=[State.REMOVING],
        what="quarantined",
        why=why.message,
        state=State.QUARANTINED,
        status=Status.QUARANTINED,
        owner=None,
    )
    return _not_removed(agent, why)


def _not_removed(agent: Agent, why: TmuxorchError) -> CannotSave:
    return CannotSave(
        f"{agent.name} was not removed: {why.message}; nothing was deleted, its files are in "
        f"{agent.worktree}"
    )


def _repository(agent: Agent) -> Repo | None:
    try:
        return git.find_repo(agent.repo)
    except NoRepository:
        return None


def refuse_from_inside(agent: Agent) -> None:
    for process in (agent.shim, agent.process):
        if process is None or not isinstance(procfs.observe_process(process), Alive):
            continue
        if processes.is_ancestor_of_us(process.pid):
            raise StateConflict(
                f"{agent.name} cannot be ended from inside its own window, because that would end "
                "this command too; run it from another terminal"
            )


def is_shim_note(line: str) -> bool:
    """Whether the line is what the shim writes at the bottom of a screen that it holds."""
    return line.startswith("[tmuxorch] ") and line.endswith(shim.NOTE)


def trim_screen(text: str, *, limit: int | None = SCREEN_BYTES) -> str:
    """The screen without what comes after the agent's last line, bounded in bytes at its start."""
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and (not lines[-1] or is_shim_note(lines[-1])):
        lines.pop()
    data = "\n".join(lines).encode("utf-8", "replace")
    return data[-limit if limit else 0 :].decode("utf-8", "ignore")
