"""The last look at what is painted: nothing that a terminal obeys leaves any widget.

What our own widgets show is literal already; fields, toasts and the palette are Textual's, and
what is typed or pasted into them is painted as it is.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tmuxorch.core.literal import is_visible


class OutputFilter(LineFilter):
    """Blots out every character that steers, in the cells it has, and links."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [segment if _is_clean(segment) else _cleaned(segment) for segment in segments]


def _is_clean(segment: Segment) -> bool:
    text, style, control = segment
    if control or (style is not None and style.link):
        return False
    return text.isascii() and text.isprintable()


def _cleaned(segment: Segment) -> Segment:
    text, style, _ = segment
    if style is not None and style.link:
        style = style.update_link(None)
    return Segment("".join(c if is_visible(c) else "\ufffd" * cell_len(c) for c in text), style)
