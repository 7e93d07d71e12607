"""Lines of text with styles: what the views on the right show.

A line is a value: equal lines look equal, so a view repaints only what differs. How it looks
is worked out when it comes into view, so a diff of a hundred thousand lines costs what is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from textwrap import wrap
from typing import Any, Protocol

from rich.style import Style

from tmuxorch.core.literal import literal

# A piece of text and its style: a name of the view's own styles, or one read off a terminal.
Span = tuple[str, str | Style]


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
        return len(self.text)

    def spans(self) -> list[Span]:
        return [(literal(self.text), self.style)]


def folded(lines: Sequence[TextLine], width: int) -> list[TextLine]:
    """The lines with plain text broken at words to the width, where there is no way sideways."""
    found: list[TextLine] = []
    for line in lines:
        if isinstance(line, Plain) and line.width_hint > width:
            pieces = wrap(literal(line.text), width, subsequent_indent="  ")
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
        return self.indent + 2 + len(self.text)

    def spans(self) -> list[Span]:
        label = literal(self.label).ljust(self.indent)
        return [(f"{label}  ", "label"), (literal(self.text), self.style)]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of `git diff`, with the file it belongs to for its colours."""

    text: str
    path: str

    @property
    def width_hint(self) -> int:
        return len(self.text)

    def spans(self) -> list[Span]:
        text = self.text
        if text.startswith("diff --git "):
            return [(literal(self.path), "file")]
        if text.startswith("@@"):
            return [(literal(text), "hunk")]
        if text.startswith(("+++", "---", "index ", "new file", "deleted file", "similarity",
                            "rename ", "old mode", "new mode", "Binary ")):  # fmt: skip
            return [(literal(text), "label")]
        side = {"+": "added", "-": "removed"}.get(text[:1], "")
        spans: list[Span] = [(literal(text[:1]), side)]
        return spans + [(part, f"{side}|{word}" if side else word)
                        for part, word in _syntax(literal(text[1:]), self.path)]  # fmt: skip


@lru_cache(maxsize=4096)
def _syntax(code: str, path: str) -> tuple[tuple[str, str], ...]:
    """The code in pieces, each with the kind of word it is; one line at a time, so a string
    over several lines is only coloured where it begins."""
    lexer = _lexer(path.rpartition("/")[2])
    if lexer is None or len(code) > 2000:
        return ((code, ""),)
    from pygments.token import Comment, Keyword, Name, Number, String

    kinds = (
        (Comment, "comment"),
        (Keyword, "keyword"),
        (Name.Tag, "keyword"),
        (String, "string"),
        (Number, "number"),
        (Name.Function, "function"),
        (Name.Class, "function"),
    )
    pieces = []
    for token, part in lexer.get_tokens(code):
        word = next((name for kind, name in kinds if token in kind), "")
        if part := part.rstrip("\n"):
            pieces.append((part, word))
    return tuple(pieces)


@lru_cache(maxsize=64)
def _lexer(name: str) -> Any | None:
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def diff_lines(text: str) -> list[TextLine]:
    """`git diff`'s output as lines."""
    lines: list[TextLine] = []
    path = ""
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            # Both names are the same but for a rename, where the second is the new one.
            path = line.rpartition(" b/")[2].rstrip('"')
            if lines:
                lines.append(Plain(""))
        lines.append(DiffLine(line, path))
    while lines and lines[-1] == DiffLine("", path):
        lines.pop()
    return lines
