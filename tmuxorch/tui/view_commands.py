"""Commands that change what is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tmuxorch.tui.snapshot import Tab

if TYPE_CHECKING:
    from tmuxorch.service.context import Context
    from tmuxorch.tui.lines import TextLine
    from tmuxorch.tui.screens.board import BoardScreen


def turn_tab(board: BoardScreen, *, by: int) -> None:
    tabs = list(Tab)
    board.show_tab(tabs[(tabs.index(board.tab) + by) % len(tabs)])


def scroll(board: BoardScreen, *, by: int) -> None:
    """By half of what is in view."""
    view = board.view
    view.scroll_relative(y=by * max(1, view.size.height // 2), animate=False)


def open_diff(board: BoardScreen) -> None:
    if (row := board.roster.row) is not None:
        from tmuxorch.tui import panels

        agent, colours = row.agent, board.orch.colours
        _open_page(
            board,
            f"{agent.task.name}: work since {agent.task.base}",
            lambda _: panels.diff_of(agent, colours),
        )


def open_timeline(board: BoardScreen) -> None:
    if (row := board.roster.row) is not None:
        from tmuxorch.tui import panels

        agent = row.agent
        _open_page(board, f"why {agent.task.name}", lambda ctx: panels.timeline_of(ctx, agent))


def _open_page(
    board: BoardScreen, title: str, look: Callable[[Context], Sequence[TextLine]]
) -> None:
    from tmuxorch.tui.screens.page import Page

    page = Page(title)
    board.app.push_screen(page)
    board.jobs.start(title, look, then=page.learn)


def open_help(board: BoardScreen) -> None:
    from tmuxorch.tui.screens.help import help_lines
    from tmuxorch.tui.screens.page import Page

    board.app.push_screen(
        Page("Keys", help_lines(board.app, board.commands, board.workplace.keys or {}))
    )


def open_palette(board: BoardScreen) -> None:
    board.app.action_command_palette()


def leave(board: BoardScreen) -> None:
    board.app.exit()
