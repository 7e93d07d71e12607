"""Commands that remove agents, bring removed ones back, and clear away what is nobody's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tmuxorch.model import State
from tmuxorch.tui import service_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tmuxorch.model import Agent, HistoryEntry
    from tmuxorch.tui.screens.board import BoardScreen
    from tmuxorch.tui.service_calls import Outcome
    from tmuxorch.tui.snapshot import AgentRow


def remove(board: BoardScreen) -> None:
    rows = [row for row in board.roster.chosen if row.state is not State.REMOVING]
    if not rows:
        return
    from tmuxorch.tui.screens.confirmation import Confirmation
    from tmuxorch.tui.stake_lines import removal_lines

    one = rows[0].agent.task.name if len(rows) == 1 else f"{len(rows)} agents"
    question = Confirmation(f"Remove {one}?", None, yes="remove")
    board.app.push_screen(question, lambda yes: _remove(board, rows) if yes else None)
    board.jobs.start(
        "looking at what is at stake",
        lambda _: [service_calls.observe_stake(row) for row in rows],
        then=lambda stakes: question.learn(removal_lines(stakes)),
    )


def _remove(board: BoardScreen, rows: Sequence[AgentRow]) -> None:
    board.roster.marked -= {row.id for row in rows}
    for row in rows:
        board.roster.doing[row.id] = "removing"
        board.jobs.start(
            f"removing {row.agent.task.name}",
            partial(service_calls.remove, agents=[row.agent]),
            ids=[row.id],
            then=lambda outcome: _tell_removed(board, outcome),
        )
    board.update()


def _tell_removed(board: BoardScreen, outcome: Outcome) -> None:
    board.recent.removed += outcome.done
    for entry in outcome.done:
        kept = f"; branch {entry.task.branch} is kept" if entry.branch_kept else ""
        saved = "; uncommitted work is saved" if entry.salvage_ref or entry.archive else ""
        board.say(f"removed {entry.task.name}{kept}{saved}; u brings it back")
    for failure in outcome.failures:
        board.say(failure, "error")


def undo(board: BoardScreen) -> None:
    workplace, removed = board.workplace, board.recent.removed
    entry = removed.pop() if removed else None
    board.jobs.start(
        "bringing a removed worker back",
        lambda ctx: service_calls.undo(ctx, workplace, entry),
        then=lambda agent: _tell_restored(board, agent),
    )


def has_removed(board: BoardScreen) -> bool:
    """Undo reaches back before this session too, but is on one's mind only after a removal."""
    return bool(board.recent.removed)


def open_history(board: BoardScreen) -> None:
    from tmuxorch.tui.screens.removed_list import RemovedList

    board.app.push_screen(RemovedList(board.jobs), lambda entry: _restore(board, entry))


def _restore(board: BoardScreen, entry: HistoryEntry | None) -> None:
    if entry is not None:
        workplace = board.workplace
        board.jobs.start(
            f"restoring {entry.task.name}",
            lambda ctx: service_calls.restore(ctx, workplace, entry),
            then=lambda agent: _tell_restored(board, agent),
        )


def _tell_restored(board: BoardScreen, agent: Agent) -> None:
    board.say(f"{agent.task.name} is back with its work; R starts it")
    board.select(agent.task.id)


def open_sweep(board: BoardScreen) -> None:
    from tmuxorch.tui.screens.orphan_list import OrphanList

    board.app.push_screen(OrphanList(board.jobs, board.workplace))
