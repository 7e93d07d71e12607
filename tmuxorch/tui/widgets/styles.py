"""The styles by which widgets paint their lines, mixed from the theme's colours.

Not component classes of the stylesheet: Textual would match each of them against every rule
for every widget, which took a third of the time to the first frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.widget import Widget


@dataclass(frozen=True, slots=True)
class _Recipe:
    """Letters and ground as names of the theme's colours, and how strong each is mixed in."""

    letters: str = ""
    ground: str = ""
    bold: bool = False
    italic: bool = False
    letters_share: float = 1.0
    ground_share: float = 1.0


_QUIET = _Recipe("foreground", letters_share=0.62)
_RECIPES = {
    "starting": _Recipe("accent"),
    "working": _Recipe("success"),
    "waiting": _Recipe("warning", bold=True),
    "idle": _Recipe("secondary"),
    "done": _Recipe("primary"),
    "stopped": _QUIET,
    "crashed": _Recipe("error", bold=True),
    "ended": _Recipe("warning"),
    "stray": _Recipe("warning"),
    "lost": _Recipe("error"),
    "unknown": _Recipe("warning"),
    "removing": _QUIET,
    "quarantined": _Recipe("error", bold=True),
    "selected": _Recipe(ground="primary", ground_share=0.28),
    "urgent": _Recipe(ground="warning", ground_share=0.16),
    "marked": _Recipe("accent", bold=True),
    "heading": _Recipe("foreground", bold=True, letters_share=0.62),
    "title": _Recipe("primary", bold=True),
    "key": _Recipe("accent", bold=True),
    "alarm": _Recipe("background", "error", bold=True),
    "call": _Recipe("background", "warning", bold=True),
    "tab": _QUIET,
    "chosen": _Recipe("primary", "background", bold=True),
    "label": _QUIET,
    "quiet": _QUIET,
    "good": _Recipe("success"),
    "bad": _Recipe("error"),
    "warn": _Recipe("warning"),
    "strong": _Recipe("foreground", bold=True),
    "file": _Recipe("primary", bold=True),
    "hunk": _Recipe("secondary"),
    "added": _Recipe("success", "success", ground_share=0.13),
    "removed": _Recipe("error", "error", ground_share=0.13),
    "comment": _Recipe("foreground", italic=True, letters_share=0.55),
    "keyword": _Recipe("accent"),
    "string": _Recipe("warning"),
    "number": _Recipe("primary"),
    "function": _Recipe("primary", bold=True),
}


def letter_style(widget: Widget, name: str) -> Style:
    """Only what the letters look like, so that it goes onto any ground."""
    return _palette(widget.app)[name][0] if name else Style()


def ground_style(widget: Widget, name: str) -> Style:
    """Only the ground."""
    return _palette(widget.app)[name][1] if name else Style()


def _palette(app: App[object]) -> dict[str, tuple[Style, Style]]:
    theme = app.current_theme
    named = (theme.foreground, theme.background, theme.primary, theme.secondary, theme.accent)
    return _mix((*named, theme.success, theme.warning, theme.error), theme.dark)


@lru_cache(maxsize=8)
def _mix(colours: tuple[str | None, ...], dark: bool) -> dict[str, tuple[Style, Style]]:
    names = ("foreground", "background", "primary", "secondary", "accent", "success", "warning",
             "error")  # fmt: skip
    fallback = {"foreground": "#e0e0e0" if dark else "#202020",
                "background": "#121212" if dark else "#f5f5f5"}  # fmt: skip
    plain = fallback["foreground"]
    mixed = {
        name: Color.parse(colour or fallback.get(name, colours[2] or plain))
        for name, colour in zip(names, colours, strict=True)
    }
    return {name: _style(recipe, mixed) for name, recipe in _RECIPES.items()}


def _style(recipe: _Recipe, mixed: dict[str, Color]) -> tuple[Style, Style]:
    def blend(name: str, share: float) -> str | None:
        return mixed["background"].blend(mixed[name], share).hex if name else None

    letters = Style(
        color=blend(recipe.letters, recipe.letters_share),
        bold=recipe.bold or None,
        italic=recipe.italic or None,
    )
    return letters, Style(bgcolor=blend(recipe.ground, recipe.ground_share))
