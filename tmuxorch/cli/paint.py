"""Tables and colours for a terminal; everything that came from outside is made harmless."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

CELL_MAX = 200
_COLOURS = {
    "starting": "36",
    "working": "32",
    "waiting": "1;33",
    "idle": "34",
    "done": "2;32",
    "stopped": "2",
    "crashed": "31",
    "ended": "33",
    "stray": "35",
    "lost": "35",
    "unknown": "33",
    "removing": "2",
    "quarantined": "31",
}


def wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ


def colour(word: str, text: str) -> str:
    """`text` in the colour of the status `word`."""
    code = _COLOURS.get(word)
    return text if code is None else f"\x1b[{code}m{text}\x1b[0m"


def harmless(text: str) -> str:
    """The text with control characters shown, not obeyed."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def table(rows: Sequence[Sequence[str]], *, colours: bool, width: int | None = None) -> str:
    """Aligned columns; the last one is cut to the terminal's width, a status is coloured."""
    if width is None:
        width = _terminal_width()
    # A task may be a book; 0 means that somebody wants to read it.
    clean = [[harmless(cell if width == 0 else cell[:CELL_MAX]) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in clean) for i in range(len(clean[0]))]
    lines = []
    for row in clean:
        cells = [cell.ljust(w) for cell, w in zip(row, widths, strict=True)]
        line = "  ".join(cells).rstrip()
        if width and len(line) > width:
            line = line[: width - 1] + "\u2026"
        if colours and row[0]:
            line = line.replace(row[0], colour(row[0], row[0]), 1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _terminal_width() -> int | None:
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return None
