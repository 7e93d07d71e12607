"""The field below the list that narrows it, made when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widgets import Input

    from tmuxorch.tui.screens.board import BoardScreen


class ListFilter:
    """Shown while it is written in or has words."""

    def __init__(self, board: BoardScreen) -> None:
        self._board = board
        self._field: Input | None = None

    async def open(self) -> None:
        if self._field is None:
            from textual.widgets import Input

            placeholder = "name, task, status\u2026"
            self._field = Input(id="filter", compact=True, placeholder=placeholder)
            await self._board.query_one("#left").mount(self._field)
        self._field.display = True
        self._field.focus()

    def clear(self) -> None:
        if self._field is not None:
            self._field.value = ""
        self.close()

    def close(self) -> None:
        """Back to the list; what was written goes on narrowing it."""
        if self._field is not None:
            self._field.display = bool(self._field.value)
            self._board.roster.words = self._field.value
        self._board.focus_list()
        self._board.update()
