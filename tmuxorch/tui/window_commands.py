"""Commands that lead to an agent's window or worktree, and to what an ended one left."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from tmuxorch.errors import NotRunning
from tmuxorch.tui import service_calls

if TYPE_CHECKING:
    from tmuxorch.model import Agent, AgentId
    from tmuxorch.service.context import Context
    from tmuxorch.service.workers.attaching import Takeover
    from tmuxorch.tui.screens.board import BoardScreen
    from tmuxorch.tui.snapshot import AgentRow

LAST_LINES = 12


def attach(board: BoardScreen) -> None:
    row = board.roster.row
    if row is None:
        return
    if row.ended:
        _open_triage(board, row)
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


def _open_triage(board: BoardScreen, row: AgentRow) -> None:
    from tmuxorch.tui.screens.triage import Triage

    card = Triage(row)
    board.app.push_screen(card, lambda command: _do_chosen(board, row.id, command))
    board.jobs.start(
        "looking at what it left",
        lambda ctx: (
            service_calls.observe_stake(row),
            service_calls.last_lines(ctx, row.agent, LAST_LINES),
        ),
        then=lambda found: card.learn(*found),
    )


def _do_chosen(board: BoardScreen, agent_id: AgentId, command: str | None) -> None:
    board.select(agent_id)
    if command:
        board.call_later(board.action_command, command)
