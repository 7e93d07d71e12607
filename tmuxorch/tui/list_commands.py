"""Commands that move about in the list, mark in it and narrow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmuxorch.tui.screens.board import BoardScreen


def move(board: BoardScreen, *, by: int) -> None:
    board.roster.select_at(board.roster.index + by)
    board.update()


def go_to_first(board: BoardScreen) -> None:
    board.roster.select_at(0)
    board.update()


def go_to_last(board: BoardScreen) -> None:
    board.roster.select_at(len(board.roster.rows) - 1)
    board.update()


def go_to(board: BoardScreen, *, number: int) -> None:
    """The one of that number, if there are so many."""
    if number <= len(board.roster.rows):
        board.roster.select_at(number - 1)
        board.update()


def go_to_waiting(board: BoardScreen) -> None:
    board.roster.select_next_waiting()
    board.update()


def mark(board: BoardScreen) -> None:
    if board.roster.selected is not None:
        board.roster.marked ^= {board.roster.selected}
        move(board, by=1)


def mark_all(board: BoardScreen) -> None:
    board.roster.mark_all_or_none()
    board.update()


def toggle_everywhere(board: BoardScreen) -> None:
    board.roster.everywhere = not board.roster.everywhere
    board.update()


async def open_filter(board: BoardScreen) -> None:
    await board.filter.open()


def clear(board: BoardScreen) -> None:
    board.roster.marked.clear()
    board.filter.clear()
