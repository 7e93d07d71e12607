"""A component's colours for painting by hand, with what is see-through already mixed in."""

from __future__ import annotations

from rich.style import Style
from textual.widget import Widget


def ink(widget: Widget, name: str) -> Style:
    """Only what the letters look like, so that it goes onto any background."""
    full = widget.get_component_rich_style(name)
    return Style(
        color=full.color, bold=full.bold, italic=full.italic, underline=full.underline, dim=full.dim
    )


def wash(widget: Widget, name: str) -> Style:
    """Only the background."""
    return Style(bgcolor=widget.get_component_rich_style(name).bgcolor)
