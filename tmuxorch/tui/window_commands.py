"""Commands that lead to an agent's window or worktree, and to what an ended one left."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from tmuxorch.errors import NotRunning

if TYPE_CHECKING:
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context
    from tmuxorch.service.workers.attaching import Takeover
    from tmuxorch.tui.screens.board import BoardScreen


def attach(board: BoardScreen) -> None:
    row = board.roster.row
    if row is None:
        return
    if row.ended:
        board.open_card(row)
        return
    agent = row.agent
    board.jobs.start(
        f"finding {agent.task.name}",
        lambda ctx: _find_way(ctx, agent),
        then=lambda way: _go_there(board, agent, way),
    )


def _find_way(ctx: Context, agent: Agent) -> Takeover | NotRunning | None:
    """How to get there, None if the terminal is there already; or that it has died meanwhile."""
    from tmuxorch.service.workers import attaching

    try:
        way = attaching.switch_or_take(ctx, agent)
    except NotRunning as e:
        return e
    if way is None:
        attaching.say_way_back(ctx, agent, agent.run.place.pane if agent.run.place else None)
    return way


def _go_there(board: BoardScreen, agent: Agent, way: Takeover | NotRunning | None) -> None:
    if isinstance(way, NotRunning):
        board.say(way.message, "warning")
    elif way is None:
        board.say(f"you were at {agent.task.name}; prefix L (switch-client -l) goes there again")
    else:
        said = board.orch.terminal.lend(way.argv, way.environ, keep_errors=True)
        board.say(said or f"back from {agent.task.name}", "warning" if said else "information")
        board.update()


def open_shell(board: BoardScreen) -> None:
    if (row := board.roster.row) is None:
        return
    worktree = row.agent.task.worktree
    if not os.path.isdir(worktree):
        board.say(f"the worktree {worktree} is not there", "warning")
        return
    environ = board.workplace.environ
    shell = shutil.which(environ.get("SHELL", ""), path=environ.get("PATH")) or "/bin/sh"
    said = board.orch.terminal.lend([shell], environ, cwd=worktree)
    if said:
        board.say(said, "warning")
