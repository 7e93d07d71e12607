"""Where an agent is: its pane, and whether its processes can be seen from here at all.

What cannot be seen cannot be ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.tmux.holding import is_held
from tmuxorch.core.observation import Unknown, find_unknown
from tmuxorch.errors import CannotSee, NotRunning
from tmuxorch.model import EventKind

if TYPE_CHECKING:
    from tmuxorch.adapters.tmux.server import Pane
    from tmuxorch.model import Agent, ProcessId
    from tmuxorch.service.context import Context


_WORD = "a person said that the machine or container where it ran is gone"


def recorded_processes(ctx: Context, agent: Agent) -> tuple[ProcessId, ...]:
    """Shims first, then agents: of the record, and of the shim's word that nobody recorded."""
    said: tuple[ProcessId | None, ProcessId | None] = (None, None)
    try:
        started = rundir.read_started(ctx.run_dir(agent.task.id))
    except (OSError, KeyError, ValueError) as error:
        if agent.run.process is None:
            raise CannotSee(
                f"what the shim of {agent.task.name} said cannot be read: {error}"
            ) from error
    else:
        said = (started.shim, started.process) if started else said
    found = (agent.run.shim, said[0], agent.run.process, said[1])
    return tuple(dict.fromkeys(process for process in found if process is not None))


def why_unseen(ctx: Context, agent: Agent) -> str | None:
    """Why nobody can tell from here whether the agent's processes live; None if one can.

    Those that were seen dead once, wherever that was, need not be seen again.
    """
    if rundir.is_over(ctx.run_dir(agent.task.id), run=agent.run.number):
        return None
    try:
        processes = recorded_processes(ctx, agent)
    except CannotSee as error:
        return error.message
    if not processes and agent.run.place is not None:
        processes = (agent.run.place.server,)  # where that runs its pane would
    return find_unknown(map(procfs.observe_process, processes))


def refuse_unseen(ctx: Context, agent: Agent) -> None:
    """Raise CannotSee, before anything is touched, unless its processes can be seen."""
    why = why_unseen(ctx, agent)
    if why is not None:
        raise CannotSee(
            f"{agent.task.name} cannot be ended from here, because its process cannot be seen "
            f"({why}); nothing was touched, run this where it was started; if that machine or "
            "container is "
            f"gone for good, say so with `tmuxorch rm --gone {agent.task.name}`"
        )


def take_as_gone(ctx: Context, agent: Agent) -> Agent:
    """Take a person's word that the place where it ran is gone, and with it all its processes.

    Nothing changes for what can be seen from here: that is ended like any other.
    """
    owner = agent.owner and procfs.observe_process(agent.owner)
    if isinstance(owner, Unknown):
        agent = ctx.store.swap(
            agent, expect=[agent.state], what=EventKind.TAKEN_OVER, why=_WORD, owner=None
        )
    if why_unseen(ctx, agent) is not None:
        ctx.store.record(agent, EventKind.TAKEN_AS_ENDED, _WORD)
        rundir.note_over(ctx.run_dir(agent.task.id), run=agent.run.number)
    return agent


def find_pane(ctx: Context, agent: Agent) -> Pane:
    """The agent's pane, wherever a person moved it; `NotRunning` if it has none."""
    pane = ctx.tmux(agent.run.socket).find_pane(agent.task.id)
    if pane is None:
        raise NotRunning(
            f"{agent.task.name} has no window; bring it back with `tmuxorch restart "
            f"{agent.task.name}`"
        )
    if not is_held(pane, agent.run.shim, ctx.run_dir(agent.task.id)):
        raise NotRunning(
            f"another program was started in the pane of {agent.task.name}, which is yours now; "
            f"`tmuxorch restart {agent.task.name}` gives the agent a new one"
        )
    return pane
