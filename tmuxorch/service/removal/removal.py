"""Removing a worker: the one path that a person, a failed creation and the watcher share.

Each step first looks whether it is already done, so a removal that was cut off at any
point is carried on by whoever comes next.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tmuxorch import shim
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.store.saves import read_manifest
from tmuxorch.adapters.system import processes, procfs
from tmuxorch.adapters.tmux.holding import is_held
from tmuxorch.core.observation import Alive, Dead, Ended
from tmuxorch.core.progress import Phase
from tmuxorch.core.view import exit_of
from tmuxorch.errors import (
    CannotSave,
    GitFailed,
    GitKilled,
    NoRepository,
    StateConflict,
    TmuxFailed,
    TmuxorchError,
    TmuxTimeout,
    sure,
)
from tmuxorch.model import EventKind, HistoryEntry, Milestone, Reason, State, Status, Step
from tmuxorch.service import places
from tmuxorch.service.care.insisting import insist
from tmuxorch.service.care.repository_lock import mend, repo_lock
from tmuxorch.service.health import liveness
from tmuxorch.service.removal import aside
from tmuxorch.service.workers.visibility import recorded_processes, refuse_unseen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.config import Config
    from tmuxorch.model import Agent, ProcessId
    from tmuxorch.service.context import Context
    from tmuxorch.service.removal.aside import Taken

SCREEN_LINES = 200
SCREEN_BYTES = 64 * 1024


def remove(
    ctx: Context,
    agent: Agent,
    *,
    reason: Reason,
    keep_branch: bool = False,
    config: Config | None = None,
) -> HistoryEntry:
    """Save, record and remove; the history entry is all that stays.

    What cannot be saved is not deleted: the agent becomes `quarantined` and `CannotSave`
    says why. `config` is in force for the agent's repository, by default as for all that ends.
    """
    config = config or ctx.settings.for_ending(agent.task.repo)
    grace_s, cap_bytes = config.cleanup.grace_s, config.salvage.cap_bytes
    refuse_from_inside(agent)
    refuse_unseen(ctx, agent)
    # Before anything is claimed: a tmux that does not answer leaves the agent as it is.
    save_screen(ctx, agent)
    agent = _claim(ctx, agent, reason, keep_branch)
    ctx.checkpoint("remove:claimed")
    mend(ctx, agent.task.repo)
    if agent.step.reached is Milestone.RESTORING:
        return _discard(ctx, agent, grace_s)
    taken = None
    if agent.step.reached is not Milestone.BURIED:
        end(ctx, agent, grace_s)
        agent, taken = _bury(ctx, agent, cap_bytes)
    _clear_away(ctx, agent, taken, cap_bytes)
    entry = ctx.store.history_entry(agent.task.id)
    return sure(entry, "the row was written before anything was cleared away")


def take_back(ctx: Context, agent: Agent, failure: BaseException, what: EventKind) -> None:
    """Undo a making that failed by the one removal path, so that even here work is saved first.

    The save that a restore comes from stays, and no history is written of it.
    """
    words = failure.message if isinstance(failure, TmuxorchError) else repr(failure)
    current = ctx.store.agent(agent.task.id)
    if current is None or current.state not in (State.CREATING, State.RUNNING):
        return
    ctx.store.record(agent, what, words)
    try:
        remove(ctx, current, reason=Reason.CREATE_FAILED)
    except TmuxorchError as e:
        raise TmuxorchError(
            f"{words}; and what was made could not be taken back: {e.message}; do that later with "
            f"`tmuxorch rm {agent.task.name}`"
        ) from failure


def _discard(ctx: Context, agent: Agent, grace_s: float) -> HistoryEntry:
    """Take back a restore that did not come to its end: nothing is in it but what was saved."""
    entry = ctx.store.history_entry(agent.step.entry or "")
    if entry is None:
        raise _quarantined(ctx, agent, CannotSave("what it was restored from is not recorded"))
    end(ctx, agent, grace_s)
    repo = _repository(agent)
    if repo is not None:
        trash = places.trash_of(agent.task.worktree, f"{entry.task.id}.{agent.task.id}")
        try:
            insist(ctx, agent.task.repo, lambda: _take_back(ctx, repo, agent, trash))
        except GitFailed as error:
            raise _quarantined(ctx, agent, error) from error
    rundir.remove(ctx.run_dir(agent.task.id))
    ctx.store.forget(agent)
    return entry


def _take_back(ctx: Context, repo: Repo, agent: Agent, trash: str) -> None:
    """Worktree and branch of a restore; the branch stays if it was there before."""
    with repo_lock(ctx, agent.task.repo):
        reason = ctx.lock_reason(agent)
        git.discard_worktree(repo, agent.task.worktree, reason=reason, trash=trash)
        start = git.branch_commit(repo, agent.task.branch)
        if not agent.task.branch_made or agent.keep_branch:
            return
        try:
            git.delete_branch(repo, agent.task.branch, expected=start)
        except GitKilled:
            raise
        except GitFailed as error:
            ctx.store.record(agent, EventKind.BRANCH_KEPT, error.message)


def _claim(ctx: Context, agent: Agent, reason: Reason, keep_branch: bool) -> Agent:
    """Take the agent for removal, from its owner too if that one has died."""
    me = procfs.identify_self()
    if agent.owner is not None and agent.owner != me:
        dead = isinstance(procfs.observe_process(agent.owner), Dead)
        if not dead:
            doing = "removed" if agent.state is State.REMOVING else "made"
            raise StateConflict(
                f"{agent.task.name} is being {doing} by pid {agent.owner.pid}; wait for it to "
                "finish"
            )
    if agent.state is State.REMOVING:
        return ctx.store.swap(agent, expect=[State.REMOVING], owner=me)
    return ctx.store.swap(
        agent,
        expect=[agent.state],
        what=EventKind.REMOVING,
        why=f"reason: {reason}",
        state=State.REMOVING,
        status=Status.REMOVING,
        owner=me,
        reason=reason,
        keep_branch=keep_branch or agent.keep_branch,
        step=agent.step if agent.state is State.CREATING else Step(),
    )


def save_screen(ctx: Context, agent: Agent) -> None:
    tmux = ctx.tmux(agent.run.socket)
    pane = tmux.find_pane(agent.task.id)
    if pane is None:
        return
    try:
        text = tmux.capture(pane.place.pane, lines=SCREEN_LINES)
    except TmuxFailed:
        return  # closed between the two calls: the screen is gone, an earlier one may be kept
    rundir.save_screen(ctx.run_dir(agent.task.id), trim_screen(text))


def end(ctx: Context, agent: Agent, grace_s: float) -> None:
    """End every process of the agent and see it dead, then close what is left of its window.

    `CannotSee`, with nothing touched, where its processes cannot be seen. A tmux server that
    does not answer now finds the pane without a process later, and closes it by itself.
    """
    refuse_unseen(ctx, agent)
    ctx.enter(agent, Phase.ENDING)
    tmux = ctx.tmux(agent.run.socket)
    # Those of another machine or namespace were seen dead there, or we would have refused.
    roots = tuple(filter(procfs.is_here, recorded_processes(ctx, agent)))
    processes.end_family(
        agent_id=agent.task.id,
        roots=roots,
        worktree=agent.task.worktree,
        since_ticks=_orphans_since(ctx, agent, roots),
        grace_s=grace_s,
    )
    rundir.note_over(ctx.run_dir(agent.task.id), run=agent.run.number)
    ctx.checkpoint("remove:ended")
    with suppress(TmuxTimeout):
        pane = tmux.find_pane(agent.task.id)
        if pane is not None:
            held = any(is_held(pane, it, ctx.run_dir(agent.task.id)) for it in roots or (None,))
            (tmux.close_pane if held else tmux.disown_pane)(pane)
    ctx.checkpoint("remove:closed")


def _orphans_since(ctx: Context, agent: Agent, roots: Sequence[ProcessId]) -> int | None:
    """None where the run came to an end that left none: seen over, or told of by its shim."""
    is_over = rundir.is_over(ctx.run_dir(agent.task.id), run=agent.run.number)
    if is_over or isinstance(liveness.read_exit(ctx.state_dir, agent), Ended):
        return None
    return processes.orphans_since(roots[0] if roots else None)


def _bury(ctx: Context, agent: Agent, cap_bytes: int) -> tuple[Agent, Taken | None]:
    """Set the worktree aside and save it, then write the agent's history in one transaction."""
    repo = _repository(agent)
    taken, stats, branch_kept = None, None, False
    if repo is not None:
        try:
            taken = aside.take(ctx, repo, agent, cap_bytes)
        except TmuxorchError as e:
            raise _quarantined(ctx, agent, e) from e
        except Exception as bug:
            # Nobody can carry on from what fails in the same way each time.
            _quarantined(ctx, agent, CannotSave(f"looking at it or saving it failed: {bug!r}"))
            raise
        stats = aside.count_work(repo, agent, taken, places.of_save(ctx, agent))
        branch_kept = not insist(ctx, agent.task.repo, lambda: _branch_goes(repo, agent))
    elif os.path.lexists(agent.task.worktree):
        why = CannotSave(f"its repository {agent.task.repo} is gone, so its files cannot be saved")
        raise _quarantined(ctx, agent, why)
    saved = taken.saved if taken else None
    ctx.checkpoint("remove:saved")
    ended = liveness.read_exit(ctx.state_dir, agent)
    now = ctx.clock()
    entry = HistoryEntry(
        task=replace(agent.task, branch_made=agent.task.branch_made and not agent.keep_branch),
        head_commit=stats.head_commit if stats else _head_commit(taken),
        reason=agent.reason or Reason.USER,
        exit=agent.run.exit or exit_of(ended),
        removed_at=now,
        duration_s=max(0.0, (agent.run.ended_at or now) - agent.task.created_at),
        commits=stats.commits if stats else None,
        files_changed=stats.files_changed if stats else None,
        insertions=stats.insertions if stats else None,
        deletions=stats.deletions if stats else None,
        salvage_ref=saved.ref if saved else None,
        archive=saved.place if saved else None,
        branch_kept=branch_kept,
        restored_at=None,
        last_screen=rundir.read_screen(ctx.run_dir(agent.task.id)),
    )
    agent = ctx.store.bury(agent, entry)
    ctx.checkpoint("remove:buried")
    return agent, taken


def _head_commit(taken: Taken | None) -> str | None:
    """Where its HEAD was, though nothing was counted: a restore begins there."""
    if taken is None:
        return None
    if taken.work is not None:
        return taken.work.head
    return read_manifest(taken.saved.place).head if taken.saved is not None else None


def _clear_away(ctx: Context, agent: Agent, taken: Taken | None, cap_bytes: int) -> None:
    """Everything is saved and recorded: take worktree, branch, files and row away.

    What cannot be taken away is left and noted: the removal itself is done.
    """
    repo = _repository(agent)
    if repo is not None:
        try:
            aside.clear(ctx, repo, agent, taken, cap_bytes)
        except TmuxorchError as error:
            ctx.store.unbury(agent, error.message)
            raise _not_removed(agent, error) from error
        ctx.checkpoint("remove:worktree")
        try:
            insist(ctx, agent.task.repo, lambda: _clear_branch(ctx, repo, agent))
        except TmuxorchError as error:
            ctx.store.keep_branch(agent, error.message)
    ctx.checkpoint("remove:branch")
    rundir.remove(ctx.run_dir(agent.task.id))
    ctx.checkpoint("remove:files")
    ctx.store.forget(agent)


def _clear_branch(ctx: Context, repo: Repo, agent: Agent) -> None:
    with repo_lock(ctx, agent.task.repo):
        commit = git.branch_commit(repo, agent.task.branch)
        if _branch_goes(repo, agent):
            git.delete_branch(repo, agent.task.branch, expected=commit)


def _branch_goes(repo: Repo, agent: Agent) -> bool:
    """Only a branch of our own making that holds nothing another ref lacks is dropped."""
    if not agent.task.branch_made or agent.keep_branch:
        return False
    commit = git.branch_commit(repo, agent.task.branch)
    return commit is None or git.holds_nothing(repo, agent.task.branch)


def _quarantined(ctx: Context, agent: Agent, why: TmuxorchError) -> CannotSave:
    ctx.store.swap(
        agent,
        expect=[State.REMOVING],
        what=EventKind.QUARANTINED,
        why=why.message,
        state=State.QUARANTINED,
        status=Status.QUARANTINED,
        owner=None,
    )
    return _not_removed(agent, why)


def _not_removed(agent: Agent, why: TmuxorchError) -> CannotSave:
    return CannotSave(
        f"{agent.task.name} was not removed: {why.message}; nothing was deleted, its files are in "
        f"{agent.task.worktree}"
    )


def _repository(agent: Agent) -> Repo | None:
    try:
        return git.find_repo(agent.task.repo)
    except NoRepository:
        return None


def refuse_from_inside(agent: Agent) -> None:
    for process in (agent.run.shim, agent.run.process):
        if process is None or not isinstance(procfs.observe_process(process), Alive):
            continue
        if processes.is_ancestor_of_us(process.pid):
            raise StateConflict(
                f"{agent.task.name} cannot be ended from inside its own window, because that would "
                "end this command too; run it from another terminal"
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
