"""After a lost or damaged store: records made again from what carries our marks.

The old files are moved aside, never deleted, and nothing that is found is changed: an agent
that runs is recorded as running, all others as ended and kept for a person to look at.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.store.database import FILE, MARKER
from tmuxorch.adapters.store.records import open_store
from tmuxorch.adapters.system import process_table, procfs
from tmuxorch.core.observation import Dead
from tmuxorch.errors import StoreDamaged, TmuxorchError
from tmuxorch.model import Agent, EventKind, Run, State, Status
from tmuxorch.service.care.repository_lock import mend
from tmuxorch.service.sweep import git_remains, sweep
from tmuxorch.service.sweep.orphan import Disposal, Look
from tmuxorch.service.sweep.worktrees import adopted

if TYPE_CHECKING:
    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.adapters.git.worktrees import Worktree
    from tmuxorch.core.observation import Ended, Started
    from tmuxorch.model import ProcessId
    from tmuxorch.service.context import Context

_FILES = (FILE, f"{FILE}-wal", f"{FILE}-shm", MARKER)


def set_damaged_store_aside(state_dir: str) -> str | None:
    """Move a damaged store to a directory beside it; None if it is whole.

    One that cannot be used for another reason (it is newer, locked, on a full disk, another
    user's) stays where it is, and `StoreUnusable` says why.
    """
    if not os.path.lexists(state_dir):
        return None  # lost as a whole: the next who needs it makes it
    try:
        store = open_store(state_dir)
        try:
            if store.find_damage() is None:
                return None
        finally:
            store.close()
    except StoreDamaged:
        pass
    aside = os.path.join(state_dir, time.strftime("damaged-%Y%m%d-%H%M%S"))
    os.makedirs(aside, mode=0o700, exist_ok=True)
    for name in _FILES:
        if os.path.lexists(os.path.join(state_dir, name)):
            os.rename(os.path.join(state_dir, name), os.path.join(aside, name))
    return aside


def mend_repositories(ctx: Context) -> None:
    """Clear away what killed gits left of ours in every repository that we know of."""
    look = Look(ctx)
    for root in look.repos:
        mend(ctx, root)
    for orphan in git_remains.observe(look):
        if orphan.action is Disposal.REMOVE:
            sweep.apply(ctx, orphan)


def rebuild(ctx: Context) -> list[Agent]:
    """Record every marked worktree that has no record; those that were added.

    A store without agents takes over the id that the marks name, so that they are its own.
    """
    look = Look(ctx)
    found = [
        (repo, worktree)
        for repo, worktree in look.worktrees
        if (worktree.locked_reason or "").startswith("tmuxorch:")
        and not _serves_elsewhere(look, (worktree.locked_reason or "").rpartition(":")[2])
    ]
    stores = Counter((worktree.locked_reason or "").split(":")[1] for _, worktree in found)
    if stores and ctx.store.id not in stores and not ctx.store.agents():
        ctx.store.take_id(stores.most_common(1)[0][0])
    own = f"tmuxorch:{ctx.store.id}:"
    added = []
    for repo, worktree in found:
        marked = (worktree.locked_reason or "").removeprefix(own)
        if (worktree.locked_reason or "").startswith(own) and ctx.store.agent(marked) is None:
            agent = _recollect(look, repo, worktree)
            ctx.store.add(agent)
            ctx.store.record(agent, EventKind.REBUILT, f"{agent.task.worktree} carries our mark")
            added.append(agent)
    return added


def _serves_elsewhere(look: Look, agent_id: str) -> bool:
    """Whether its shim lives and keeps its words in the state directory of another store."""
    ours, mark = os.path.realpath(look.ctx.state_dir), f"/run/{agent_id}"
    for row in look.processes:
        named = [word for word in process_table.read_arguments(row.pid) if mark in word]
        if any(os.path.realpath(word.partition(mark)[0]) != ours for word in named):
            return True
    return False


def _recollect(look: Look, repo: Repo, worktree: Worktree) -> Agent:
    """All that the worktree, its run directory, its processes and tmux still tell of an agent."""
    ctx = look.ctx
    agent = adopted(ctx, repo, worktree)
    directory = ctx.run_dir(agent.task.id)
    launch = rundir.read_launch(directory)
    started, ended = _words(directory)
    process, shim = (started.process, started.shim) if started else (None, None)
    pane = None
    with suppress(TmuxorchError):  # the watcher will find the window
        pane = ctx.tmux().find_pane(agent.task.id)
    if process is None:
        process, shim = _living(look, agent.task.id, pane.pid if pane else 0)
    runs = process is not None and not isinstance(procfs.observe_process(process), Dead)
    command = launch.argv if launch else ()
    task = replace(
        agent.task,
        name=launch.env.get("TMUXORCH_NAME", agent.task.name) if launch else agent.task.name,
        text=rundir.read_task(directory) or "",
        agent=os.path.basename(command[0]) if command else "unknown",
        command=command,
        branch_made=False,  # nobody knows, so it is never deleted
        base=_main_branch(repo) or agent.task.base_commit,
    )
    run = Run(
        launch.env.get("TMUXORCH_SOCKET", ctx.socket) if launch else ctx.socket,
        number=next((word.run for word in (started, ended) if word and word.run), 0),
        place=pane.place if pane is not None else None,
        process=process,
        shim=shim,
        exit=None if runs or ended is None else ended.exit,
        stopped=not runs,
        started_at=started.at if started else None,
        ended_at=None if runs else ctx.clock(),
    )
    return Agent(
        task,
        run,
        state=State.RUNNING if runs else State.EXITED,
        status=Status.WORKING if runs else Status.DONE,
    )


def _words(directory: str) -> tuple[Started | None, Ended | None]:
    """What the shim said; nothing if it cannot be read."""
    with suppress(OSError, ValueError):
        return rundir.read_started(directory), rundir.read_exit(directory)
    return None, None


def _living(look: Look, agent_id: str, pane_pid: int) -> tuple[ProcessId | None, ProcessId | None]:
    """The agent's process and its shim, by their marks, where no word of the shim is left."""
    rows = look.serving(agent_id)
    shim = next((row for row in rows if row.pid == pane_pid), None)
    others = [row for row in rows if row is not shim]
    children = [row for row in others if shim is not None and row.parent == shim.pid]
    first = next(iter((*children, *others)), shim)
    return (first.id if first else None), (shim.id if shim else None)


def _main_branch(repo: Repo) -> str | None:
    done = git.git(repo.root, "symbolic-ref", "-q", "--short", "HEAD", ok=(0, 1, 128))
    return done.stdout.decode().strip() or None
