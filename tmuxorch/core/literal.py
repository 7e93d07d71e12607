"""Outside text as it may stand on a screen: every character shown, none obeyed."""

from __future__ import annotations

import re

# C0, DEL and C1; marks and overrides of writing direction; line and paragraph separators;
# the byte order mark; halves of surrogate pairs (bytes that were not UTF-8).
_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_TAB_WIDTH = 4


def literal(text: str) -> str:
    """One line of outside text with everything that steers a terminal replaced."""
    if text.isascii() and text.isprintable():
        return text
    return _OBEYED.sub("\ufffd", text.expandtabs(_TAB_WIDTH))


def literal_lines(text: str) -> list[str]:
    """The same for text of several lines, split at newlines only."""
    return [literal(line) for line in text.replace("\r\n", "\n").split("\n")]


def first_line(text: str) -> str:
    """The first line that says something, for places with room for one."""
    return next((literal(line.strip()) for line in text.split("\n") if line.strip()), "")
