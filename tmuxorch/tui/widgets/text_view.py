"""A scrolling view of lines that repaints only the lines that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tmuxorch.tui.lines import TextLine

_NAMES = ("label", "good", "bad", "warn", "strong", "file", "hunk", "added", "removed", "comment",
          "keyword", "string", "number", "function")  # fmt: skip


class TextView(ScrollView, can_focus=True):
    """Shows lines; `follow` keeps the end in view until the person scrolls up."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"text--{name}" for name in _NAMES}
    HELP = "The selected agent."

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._lines: Sequence[TextLine] = ()
        self._follow = False

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
            self.scroll_to(x=0 if fresh else None, y=self.max_scroll_y, animate=False)
        elif fresh:
            self.scroll_to(x=0, y=0, animate=False)

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
        for name in style.split("|"):
            if name:
                found += self.get_component_rich_style(f"text--{name}", partial=True)
        return found
