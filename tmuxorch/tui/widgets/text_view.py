"""A scrolling view of lines that repaints only the lines that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tmuxorch.tui.lines import TextLine
from tmuxorch.tui.widgets.styles import ground_style, letter_style

# Styles that colour the ground too; `ground|letters` puts other letters on it.
_GROUNDS = ("added", "removed")


class TextView(ScrollView, can_focus=True):
    """Shows lines; `follow` keeps the end in view until the person scrolls up."""

    HELP = "The selected agent."

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._lines: Sequence[TextLine] = ()

    def show(self, lines: Sequence[TextLine], *, follow: bool = False, fresh: bool = False) -> None:
        """Replace the lines; `fresh` ones are another thing's, so the view goes to their start."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        before, self._lines = self._lines, lines
        width = max((line.width_hint for line in lines), default=0)
        size = Size(width, len(lines))
        resized = size != self.virtual_size
        self.virtual_size = size
        if fresh or resized:
            self.refresh()
        else:
            for y, (old, new) in enumerate(zip(before, lines, strict=True)):
                if old != new:
                    self.refresh_line(y)
        if follow and (fresh or at_end):
            self.call_after_refresh(self._to_end)
        elif fresh:
            self.scroll_to(x=0, y=0, animate=False)

    def _to_end(self) -> None:
        self.scroll_to(x=0, y=self.max_scroll_y, animate=False)

    @property
    def text(self) -> str:
        """What is shown, for tests and for people who copy it."""
        return "\n".join("".join(text for text, _ in line.spans()) for line in self._lines)

    def render_line(self, y: int) -> Strip:
        x, top = self.scroll_offset
        width = self.size.width
        base = self.rich_style
        index = top + y
        if index >= len(self._lines):
            return Strip.blank(width, base)
        segments = [
            Segment(text, base + self._style(style)) for text, style in self._lines[index].spans()
        ]
        return Strip(segments).crop_extend(x, x + width, base)

    def _style(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        found = Style()
        ground, _, letters = style.rpartition("|")
        if ground:
            found += ground_style(self, ground)
        elif letters in _GROUNDS:
            found += ground_style(self, letters)
        return found + letter_style(self, letters) if letters else found
