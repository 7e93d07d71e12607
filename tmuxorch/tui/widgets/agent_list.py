"""The agents, a line each; only lines that changed are painted again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tmuxorch.model import AgentId, Status
from tmuxorch.tui.list_lines import SIGNS, Heading, Line, ListLine
from tmuxorch.tui.widgets.styles import ground_style, letter_style

_WORD, _AGE = 8, 4
_CHANGES, _AGENT = 11, 8
# From how many cells on there is room for another column.
_WITH_CHANGES, _WITH_AGENT = 44, 54


class AgentList(ScrollView, can_focus=True):
    """Shows lines with one selected; the screen decides which."""

    class Pointed(Message):
        """A click on an agent; a second one on the same is a wish to go there."""

        def __init__(self, agent_id: AgentId, *, twice: bool) -> None:
            super().__init__()
            self.agent_id = agent_id
            self.twice = twice

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._lines: Sequence[ListLine] = ()
        self._selected: AgentId | None = None

    def show(self, lines: Sequence[ListLine], selected: AgentId | None) -> None:
        """Show these lines; repaints only what differs and keeps the selected one in view."""
        before, before_selected = self._lines, self._selected
        self._lines, self._selected = lines, selected
        size = Size(self.size.width, len(lines))
        if len(before) != len(lines):
            self.virtual_size = size
            self.refresh()
        else:
            for y, (old, new) in enumerate(zip(before, lines, strict=True)):
                touched = isinstance(new, Line) and selected != before_selected
                if old != new or (
                    touched and isinstance(new, Line) and new.id in (selected, before_selected)
                ):
                    self.refresh_line(y)
        if selected != before_selected or len(before) != len(lines):
            self._keep_in_view()

    def _keep_in_view(self) -> None:
        for y, line in enumerate(self._lines):
            if isinstance(line, Line) and line.id == self._selected:
                top, height = self.scroll_offset.y, max(1, self.size.height)
                first = y - 1 if y and isinstance(self._lines[y - 1], Heading) else y
                if first < top:
                    self.scroll_to(y=first, animate=False)
                elif y >= top + height:
                    self.scroll_to(y=y - height + 1, animate=False)
                return

    @property
    def text(self) -> str:
        """What is shown, without styles."""
        return "\n".join(
            "".join(part for part, _ in self._cells(line, self.size.width or 80))
            for line in self._lines
        )

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._lines))
        self.refresh()
        self.call_after_refresh(self._keep_in_view)

    def on_click(self, event: events.Click) -> None:
        y = event.y + self.scroll_offset.y
        if y < len(self._lines):
            line = self._lines[y]
            if isinstance(line, Line):
                self.post_message(self.Pointed(line.id, twice=event.chain >= 2))

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.size.width
        base = self.rich_style
        if index >= len(self._lines):
            return Strip.blank(width, base)
        line = self._lines[index]
        if isinstance(line, Line) and line.id == self._selected:
            base += ground_style(self, "selected")
        elif isinstance(line, Line) and line.status is Status.WAITING:
            base += ground_style(self, "urgent")
        parts = [Segment(text, base + style) for text, style in self._cells(line, width)]
        return Strip(parts).adjust_cell_length(width, base)

    def _cells(self, line: ListLine, width: int) -> list[tuple[str, Style]]:
        if isinstance(line, Heading):
            return [(f" {line.text} ", self._component("heading")),
                    (f"{line.count}", self._component("quiet"))]  # fmt: skip
        colour = self._component(line.status)
        quiet = self._component("quiet")
        cells: list[tuple[str, Style]] = [
            ("\u258e" if line.marked else " ", self._component("marked")),
            (f"{SIGNS[line.status]} {_fit(line.word, _WORD)} ", colour),
        ]
        right: list[tuple[str, Style]] = []
        if width >= _WITH_AGENT:
            right.append((f" {_fit(line.agent, _AGENT)}", quiet))
        if width >= _WITH_CHANGES:
            right.append((f" {line.changes:>{_CHANGES}}", self._component("quiet")))
        right.append((f" {line.age:>{_AGE}} ", quiet))
        taken = sum(cell_len(text) for text, _ in (*cells, *right))
        name = _fit(line.name, max(4, width - taken))
        strong = colour if line.status is Status.WAITING else Style()
        return [*cells, (name, strong), *right]

    def _component(self, name: str) -> Style:
        return letter_style(self, name)


def _fit(text: str, width: int) -> str:
    """Exactly `width` cells; what does not fit ends in an ellipsis."""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1) + "\u2026"
    return set_cell_size(text, width)
