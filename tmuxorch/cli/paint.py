"""Tables and their colours; what stands in a cell is one line, and shown literally."""

from __future__ import annotations

import os

from tmuxorch.core.literal import cell_width, cut, literal, padded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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


def colour(word: str, text: str) -> str:
    """`text` in the colour of the status `word`."""
    code = _COLOURS.get(word)
    return text if code is None else f"\x1b[{code}m{text}\x1b[0m"


def table(rows: Sequence[Sequence[str]], *, colours: bool, width: int | None = None) -> str:
    """Aligned columns; the last one is cut to the terminal's width, a status is coloured."""
    if width is None:
        width = _terminal_width()
    # A task may be a book; 0 means that somebody wants to read it.
    longest = CELL_MAX if width != 0 else None
    clean = [[literal(cell[:longest])[:longest] for cell in row] for row in rows]
    widths = [max(cell_width(row[i]) for row in clean) for i in range(len(clean[0]))]
    lines = []
    for row in clean:
        cells = [padded(cell, w) for cell, w in zip(row, widths, strict=True)]
        line = "  ".join(cells).rstrip()
        if width:
            line = cut(line, width)
        if colours and row[0]:
            line = line.replace(row[0], colour(row[0], row[0]), 1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _terminal_width() -> int | None:
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return None
