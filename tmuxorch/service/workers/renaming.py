"""Giving an agent another name; its branch and worktree keep theirs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxorch.core import naming
from tmuxorch.errors import NameTaken, StateConflict, TmuxFailed
from tmuxorch.model import EventKind, State

if TYPE_CHECKING:
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context

# One that is being made or removed belongs to whoever does that.
RENAMABLE = (State.RUNNING, State.EXITED, State.LOST, State.QUARANTINED)


def rename(ctx: Context, agent: Agent, name: str) -> Agent:
    """Change the name in the store, and of the window if it is there.

    The worktree and branch stay: programs in it know their paths, and the branch may have
    been pushed.
    """
    naming.check_new_name(name)
    if agent.state not in RENAMABLE:
        raise StateConflict(f"{agent.task.name} is {agent.state} and cannot be renamed now")
    if name == agent.task.name:
        return agent
    try:
        renamed = ctx.store.swap(
            agent,
            expect=RENAMABLE,
            what=EventKind.RENAMED,
            why=f"from {agent.task.name} to {name}",
            name=name,
        )
    except NameTaken as e:
        raise NameTaken(
            f"the name {name!r} is taken in {agent.task.repo}; {agent.task.name} keeps its own"
        ) from e
    # Without its window (ended, or tmux does not answer) the name in the store is the name.
    with suppress(TmuxFailed):
        pane = ctx.tmux(agent.run.socket).find_pane(agent.task.id)
        if pane is not None:
            ctx.tmux(agent.run.socket).run(
                "rename-window", "-t", pane.place.window, naming.window_name(name)
            )
    return renamed
