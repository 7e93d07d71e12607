"""Two calm themes; every other one of Textual's can be chosen with the palette."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

DARK = Theme(
    name="tmuxorch-dark",
    primary="#7aa2d6",
    secondary="#8f9bb3",
    accent="#c3a6e0",
    success="#8fbf8f",
    warning="#e6b450",
    error="#e07a7a",
    foreground="#d5d9e0",
    background="#16191f",
    surface="#1b1f27",
    panel="#232833",
    dark=True,
)
LIGHT = Theme(
    name="tmuxorch-light",
    primary="#2f5f9e",
    secondary="#5b6577",
    accent="#7a4fa3",
    success="#2f7d3b",
    warning="#a86400",
    error="#b3362f",
    foreground="#23272f",
    background="#fbfaf7",
    surface="#f4f2ed",
    panel="#e9e6de",
    dark=False,
)


def theme_for(environ: Mapping[str, str]) -> str:
    """Light where the terminal says that its background is (the convention of rxvt)."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in ("7", "15") else DARK.name
