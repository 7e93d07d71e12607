"""One agent looked at closely: its work, its screen, and what is really there of it.

Every surface asks here, so that all of them say the same of an agent. Nothing is changed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system import processes, procfs
from tmuxorch.core.observation import Alive, Dead, Unknown
from tmuxorch.errors import TmuxorchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tmuxorch.adapters.git.changes import WorkStats
    from tmuxorch.adapters.system.processes import Member
    from tmuxorch.model import Agent, ProcessId
    from tmuxorch.service.context import Context

DISK_LOOK_S = 0.5


# -- its work ------------------------------------------------------------------------------


def read_diff(agent: Agent, *, stat: bool = False, colour: bool = False) -> bytes:
    """Commits, staged, unstaged and untracked changes against its base, as git prints them."""
    repo, task = git.find_repo(agent.task.repo), agent.task
    return git.diff(
        repo,
        task.worktree,
        task.base,
        task.base_commit,
        admin=agent.admin,
        stat=stat,
        color=colour,
    )


def count_work(agent: Agent) -> WorkStats:
    """How much it has written since its base."""
    repo, task = git.find_repo(agent.task.repo), agent.task
    return git.work_stats(repo, task.worktree, task.base_commit, admin=agent.admin)


# -- its screen ----------------------------------------------------------------------------


def capture_screen(
    ctx: Context, agent: Agent, *, scrollback: int | None = None, colours: bool = False
) -> str | None:
    """What its pane shows, and so many lines of what it showed; None if it has no pane."""
    tmux = ctx.tmux(agent.run.socket)
    pane = tmux.find_pane(agent.task.id)
    if pane is None:
        return None
    return tmux.capture(pane.place.pane, lines=scrollback, escapes=colours)


def read_saved_screen(ctx: Context, agent: Agent) -> str | None:
    """What was kept of its last screen; None if nothing was."""
    return rundir.read_screen(ctx.run_dir(agent.task.id))


# -- what is there of it -------------------------------------------------------------------


class Presence(Enum):
    """Whether something that belongs to an agent is there."""

    THERE = "there"
    GONE = "gone"
    UNKNOWN = "unknown"
    UNRECORDED = "none recorded"


@dataclass(frozen=True, slots=True)
class PresenceFact:
    """What a look at one thing of an agent found; `detail` says where, how or why."""

    presence: Presence
    detail: str = ""


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """What is there of an agent at this moment, whatever is recorded."""

    window: PresenceFact
    process: PresenceFact
    shim: PresenceFact
    worktree: PresenceFact


def observe_health(ctx: Context, agent: Agent) -> HealthFacts:
    there = os.path.isdir(agent.task.worktree)
    return HealthFacts(
        window=_observe_window(ctx, agent),
        process=_observe_process(agent.run.process),
        shim=_observe_process(agent.run.shim),
        worktree=PresenceFact(Presence.THERE if there else Presence.GONE),
    )


def _observe_window(ctx: Context, agent: Agent) -> PresenceFact:
    try:
        pane = ctx.tmux(agent.run.socket).find_pane(agent.task.id)
    except TmuxorchError as e:
        return PresenceFact(Presence.UNKNOWN, e.message)
    if pane is None:
        return PresenceFact(Presence.GONE)
    others = pane.panes_in_window - 1
    beside = f", {others} other panes beside it" if others else ""
    place = pane.place
    return PresenceFact(Presence.THERE, f"{place.session} {place.window} {place.pane}{beside}")


def _observe_process(process: ProcessId | None) -> PresenceFact:
    if process is None:
        return PresenceFact(Presence.UNRECORDED)
    match procfs.observe_process(process):
        case Alive():
            return PresenceFact(Presence.THERE, f"pid {process.pid}")
        case Dead(how):
            return PresenceFact(Presence.GONE, how)
        case Unknown(why):
            return PresenceFact(Presence.UNKNOWN, why)


# -- what it costs -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """One of its processes, and what that uses."""

    pid: int
    command: str
    memory_bytes: int
    processor_s: float


def observe_family(agent: Agent) -> tuple[Member, ...]:
    """Every living process of the agent's."""
    return processes.find_family(
        agent_id=agent.task.id,
        roots=tuple(p for p in (agent.run.shim, agent.run.process) if p is not None),
        worktree=None,
        since_ticks=None,
    )


def measure_costs(agent: Agent) -> Iterator[Cost]:
    """Of each process that can be measured."""
    from tmuxorch.adapters.system.process_costs import measure_process

    for member in observe_family(agent):
        used = measure_process(member.process)
        if used is not None:
            pid = member.process.pid
            yield Cost(pid, member.command, used.memory_bytes, used.processor_s)


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The files below a directory; not `complete` if the time for counting was over before."""

    bytes: int
    files: int
    complete: bool


def measure_disk(directory: str, *, within_s: float = DISK_LOOK_S) -> DiskUse:
    total, files, deadline = 0, 0, time.monotonic() + within_s
    todo = [directory]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
                    files += 1
        if time.monotonic() > deadline:
            return DiskUse(total, files, False)
    return DiskUse(total, files, True)
