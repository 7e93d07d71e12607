"""Lines of text with styles: what the views on the right show.

A line is a value: equal lines look equal, so a view repaints only what differs. How it looks
is worked out when it comes into view, so a diff of a hundred thousand lines costs what is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING, Protocol

from rich.style import Style

from tmuxorch.core.literal import cell_width, literal

if TYPE_CHECKING:
    from tmuxorch.tui.highlight import Highlighter

# A piece of text and its style: a name of the view's own styles, or one read off a terminal.
Span = tuple[str, str | Style]


# Painting a line takes a time that grows with its length, whether it is in view or not.
LINE_MAX = 10_000


def _literal(text: str) -> str:
    if len(text) <= LINE_MAX:
        return literal(text)
    return f"{literal(text[:LINE_MAX])}\u2026 and {len(text) - LINE_MAX} characters more"


class TextLine(Protocol):
    """One line; `spans` hold literal text only."""

    @property
    def width_hint(self) -> int: ...

    def spans(self) -> list[Span]: ...


@dataclass(frozen=True, slots=True)
class Plain:
    """Text in one style."""

    text: str
    style: str = ""

    @property
    def width_hint(self) -> int:
        return cell_width(_literal(self.text))

    def spans(self) -> list[Span]:
        return [(_literal(self.text), self.style)]


def folded(lines: Sequence[TextLine], width: int) -> list[TextLine]:
    """The lines with plain text broken at words to the width, where there is no way sideways."""
    found: list[TextLine] = []
    for line in lines:
        if isinstance(line, Plain) and line.width_hint > width:
            text = _literal(line.text)
            letters = width if text.isascii() else max(8, width * len(text) // cell_width(text))
            pieces = wrap(text, letters, subsequent_indent="  ")
            found += [Plain(piece, line.style) for piece in pieces]
        else:
            found.append(line)
    return found


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and what is said of it, in columns."""

    label: str
    text: str
    style: str = ""
    indent: int = 10

    @property
    def width_hint(self) -> int:
        return self.indent + 2 + cell_width(_literal(self.text))

    def spans(self) -> list[Span]:
        label = literal(self.label).ljust(self.indent)
        return [(f"{label}  ", "label"), (_literal(self.text), self.style)]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of `git diff`, with the file it belongs to for its colours."""

    text: str
    path: str
    colours: Highlighter | None = field(default=None, compare=False, repr=False)

    @property
    def width_hint(self) -> int:
        return cell_width(_literal(self.text))

    def spans(self) -> list[Span]:
        text = self.text
        if text.startswith("diff --git "):
            return [(_literal(self.path), "file")]
        if text.startswith("@@"):
            return [(_literal(text), "hunk")]
        if text.startswith(("+++", "---", "index ", "new file", "deleted file", "similarity",
                            "rename ", "old mode", "new mode", "Binary ")):  # fmt: skip
            return [(_literal(text), "label")]
        side = {"+": "added", "-": "removed"}.get(text[:1], "")
        code = _literal(text[1:])
        pieces = self.colours.pieces(self.path, code) if self.colours else ((code, ""),)
        spans: list[Span] = [(literal(text[:1]), side)]
        return spans + [(part, f"{side}|{word}" if side else word) for part, word in pieces]


def diff_lines(text: str, colours: Highlighter | None = None) -> list[TextLine]:
    """`git diff`'s output as lines; without `colours` code is plain."""
    lines: list[TextLine] = []
    path = ""
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            # Both names are the same but for a rename, where the second is the new one.
            path = line.rpartition(" b/")[2].rstrip('"')
            if lines:
                lines.append(Plain(""))
        lines.append(DiffLine(line, path, colours))
    while lines and lines[-1] == DiffLine("", path):
        lines.pop()
    return lines
