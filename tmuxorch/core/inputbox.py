"""The input box on an agent's screen: what is written in it, and whether that is the message."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from tmuxorch.config.profiles import Profile

_ESCAPE = re.compile(r"\x1b\[([\d;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")
_FRAME = " \t\xa0│┃"
_BORDER = re.compile(r" *[╹╰└]?[▀─]{5,}[╯┘]?")
ROW_MAX = 8000  # a row's characters with its escapes
# What several programs show instead of a long text.
_FOLDED = re.compile(r"\[Pasted [^\]\n]*\]")
_PLAIN = re.compile(r"[A-Za-z0-9]+(?: [A-Za-z0-9]+)*")
_PLAIN_MAX = 30


def read_box(profile: Profile, lines: Sequence[str]) -> str | None:
    """What is written in the box, "" if nothing, None if there is no box on the screen.

    The lines are as tmux gives them with escapes: what is drawn faint only hints at what could
    be written there. What stands beside the box does not belong to it.
    """
    if not profile.box:
        return None
    plain = [without_escapes(line[:ROW_MAX]).rstrip() for line in lines]
    while plain and not plain[-1]:
        plain.pop()
    text = "\n".join(plain)
    matches = list(re.finditer(profile.box, text, re.MULTILINE))
    if not matches:
        return None
    found = matches[-1]
    pairs = zip(plain, lines, strict=False)
    clear = "\n".join(
        without_faint(line[:ROW_MAX])[: len(row)].ljust(len(row)) for row, line in pairs
    )
    start, end = found.span(1)
    border = (
        _BORDER.match(text, text.rindex("\n", 0, found.end()) + 1) if "\n" in found[0] else None
    )
    width = border.end() - border.start() if border else ROW_MAX
    # The first row of what is written may begin in the middle of a line.
    column = start - (text.rfind("\n", 0, start) + 1)
    rows = (" " * column + clear[start:end]).split("\n") if start >= 0 else []
    written = "\n".join(_cut(row, width).strip(_FRAME) for row in rows).strip()
    is_hint = profile.placeholder and re.fullmatch(profile.placeholder, written)
    return "" if is_hint else written


def _cut(row: str, width: int) -> str:
    """The row's first so many columns."""
    used = 0
    for at, character in enumerate(row):
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > width:
            return row[:at]
    return row


def holds(written: str, message: str) -> bool:
    """Whether what is written in a box may be this message, wrapped or folded by the program."""
    if _FOLDED.search(written):
        return True
    shown, meant = _letters(written), _letters(message)
    if not meant:
        return bool(written)
    # A box shows the end of a long text, or its beginning.
    return shown[-40:] in meant if len(shown) > 40 else bool(shown) and shown in meant


def plain_words(written: str) -> str:
    """A run of letters, digits and single spaces that stands on one line of the box."""
    last = ""
    for row in written.split("\n"):
        for found in _PLAIN.findall(row):
            if len(found) >= min(3, len(written.strip())):
                last = found
    return last[-_PLAIN_MAX:].strip()


def without_escapes(line: str) -> str:
    return _ESCAPE.sub("", line)


def without_faint(line: str) -> str:
    """The line without escapes, and with spaces for what is drawn faint."""
    if "\x1b" not in line:
        return line
    shown: list[str] = []
    faint, at = False, 0
    for found in _ESCAPE.finditer(line):
        piece = line[at : found.start()]
        shown.append(" " * len(piece) if faint else piece)
        at = found.end()
        if found[1] is not None:
            faint = _is_faint(found[1], faint)
    piece = line[at:]
    shown.append(" " * len(piece) if faint else piece)
    return "".join(shown)


def backgrounds(line: str) -> list[str]:
    """What each character of the line is drawn on: its codes, "" for the terminal's own."""
    found: list[str] = []
    ground, at = "", 0
    for escape in _ESCAPE.finditer(line):
        found += [ground] * (escape.start() - at)
        at = escape.end()
        if escape[1] is not None:
            ground = _ground(escape[1], ground)
    return found + [ground] * (len(line) - at)


def _ground(codes: str, ground: str) -> str:
    """After these codes; colours change places when they are reversed."""
    parts = codes.replace(":", ";").split(";")
    at = 0
    while at < len(parts):
        code = parts[at]
        length = 1
        if code in ("38", "48", "58"):
            length = 5 if parts[at + 1 : at + 2] == ["2"] else 3
        if code == "48":
            ground = ";".join(parts[at : at + length])
        elif code == "7" or re.fullmatch("4[0-7]|10[0-7]", code):
            ground = code
        elif code in ("", "0", "27", "49"):
            ground = ""
        at += length
    return ground


def _is_faint(codes: str, faint: bool) -> bool:
    """After these codes; the 2 of a colour (`38;2;…`, `38;5;2`) is none of them."""
    parts = codes.replace(":", ";").split(";")
    at = 0
    while at < len(parts):
        code = parts[at]
        if code in ("38", "48", "58"):
            at += 5 if parts[at + 1 : at + 2] == ["2"] else 3
            continue
        if code == "2":
            faint = True
        elif code in ("", "0", "22"):
            faint = False
        at += 1
    return faint


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())
