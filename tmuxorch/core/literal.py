"""Outside text as it may stand on a terminal: every character shown, none obeyed.

The one place that knows which characters those are. `tmuxorch ls` imports this module.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_TAB_WIDTH = 4
_FIRST_LINE_MAX = 500
_SGR_MAX = 64  # characters of parameters; a pen with all its attributes and colours has 50
# Python's word for what prints leaves out every control, format character, surrogate, private
# use and unassigned one, line and paragraph separator, but also all blanks except the space.
_BLANKS = frozenset("\xa0\u1680\u202f\u205f\u3000").union(map(chr, range(0x2000, 0x200B)))
# Marks and letters that draw nothing: joiners, fillers, selectors of a character's variant.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0").union(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_EMOJI = "\ufe0f"  # draws the character before it as a picture
_REMEMBERED = 4096  # code points, so that a text of all there are does not stay in memory


class _Escapes(dict[int, str]):
    """What each character is shown as: itself, or an escape; for `str.translate`."""

    def __init__(self, kept: str, *, icons: bool) -> None:
        super().__init__({ord(character): character for character in kept})
        self._icons = icons

    def __missing__(self, code: int) -> str:
        plain = _is_plain(chr(code)) or (self._icons and _is_private(code))
        shown = chr(code) if plain else _escape(code)
        if len(self) < _REMEMBERED:
            self[code] = shown
        return shown


def _is_plain(character: str) -> bool:
    if character.isprintable():
        return character not in _INVISIBLE
    return character in _BLANKS


def _is_private(code: int) -> bool:
    """Drawn by the fonts of people who like icons, and of unknown width."""
    return 0xE000 <= code <= 0xF8FF or 0xF0000 <= code <= 0xFFFFD or 0x100000 <= code <= 0x10FFFD


def _escape(code: int) -> str:
    """As Python, TOML and shells spell it; a byte that was not UTF-8 as that byte."""
    if code in _NAMED:
        return _NAMED[code]
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_NAMED = {9: "\\t", 10: "\\n", 13: "\\r"}
_LINE = _Escapes("", icons=False)
_SCREEN_LINE = _Escapes("", icons=True)
_TEXT = _Escapes("\n\t", icons=False)
_SCREEN = _Escapes("\n\t", icons=True)


def literal(text: str, *, icons: bool = False) -> str:
    """One line of outside text; tabs become spaces, a line's end is shown as well.

    Characters of private use are kept as `icons` where a program drew them.
    """
    if text.isascii() and text.isprintable():
        return text
    return _translate(text.expandtabs(_TAB_WIDTH), _SCREEN_LINE if icons else _LINE)


def shown(text: str) -> str:
    """Text of several lines, with its tabs and the ends of its lines."""
    if text.isascii() and text.isprintable():
        return text
    return _translate(text.replace("\r\n", "\n"), _TEXT)


def screened(text: str) -> str:
    """Text of a terminal or of git: colours are kept, all else is shown.

    A colour that hides what it is put on is shown too, for this is what reviews are read off.
    """
    first, *rest = text.replace("\r\n", "\n").split("\x1b[")
    found = [_translate(first, _SCREEN)]
    for part in rest:
        parameters, end, after = part.partition("m")
        if end and _is_colour(parameters):
            found.append(f"\x1b[{parameters}m{_translate(after, _SCREEN)}")
        else:
            found.append(_translate(f"\x1b[{part}", _SCREEN))
    return "".join(found)


def first_line(text: str) -> str:
    """The first line that says something, for places with room for one."""
    head = text.lstrip().partition("\n")[0][:_FIRST_LINE_MAX]
    return literal(head.strip())


def is_visible(character: str) -> bool:
    """Whether it draws something, or says how the one before is drawn, and does nothing else."""
    return _is_plain(character) or _is_private(ord(character)) or character == _EMOJI


def is_plain_text(text: str) -> bool:
    """Whether the text is shown as it is, so that what is seen is what it says."""
    return shown(text) == text


def _translate(text: str, escapes: _Escapes) -> str:
    if _EMOJI not in text:
        return text.translate(escapes)
    first, *rest = text.split(_EMOJI)
    found, before = [first.translate(escapes)], first[-1:]
    for part in rest:
        # Behind a picture it says how that is drawn; anywhere else it only hides.
        drawn = before > "\xff" and _is_plain(before)
        found += [_EMOJI if drawn else _escape(ord(_EMOJI)), part.translate(escapes)]
        before = part[-1:]
    return "".join(found)


def _is_colour(parameters: str) -> bool:
    if len(parameters) > _SGR_MAX or parameters.strip("0123456789;:"):
        return False
    numbers = iter(parameters.split(";"))
    for number in numbers:
        if number in ("38", "48", "58"):  # a colour follows: 5;N of a palette or 2;R;G;B
            for _ in range({"5": 1, "2": 3}.get(next(numbers, ""), 0)):
                next(numbers, None)
        elif number.lstrip("0") == "8":
            return False
    return True


# -- widths -------------------------------------------------------------------------------


def cell_width(text: str) -> int:
    """How many columns literal text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def cut(text: str, width: int) -> str:
    """The text, or as much as leaves room for an ellipsis."""
    if cell_width(text) <= width:
        return text
    taken = 0
    for index, character in enumerate(text):
        taken += _width(character)
        if taken > width - 1:
            return text[:index] + "\u2026"
    return text


def padded(text: str, width: int) -> str:
    return text + " " * (width - cell_width(text))


def _width(character: str) -> int:
    if character < "\u0300":
        return 1
    import unicodedata  # here: most texts need it not, and `ls` is to be quick

    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


# -- what a person pastes, and what is pasted for them ------------------------------------


def pasteable(words: Iterable[str]) -> str:
    """A command that does what it shows: each word quoted for the shell where it must be.

    A word with characters that are shown as escapes is spelled byte by byte as bash, zsh and
    ksh read it.
    """
    import shlex

    return " ".join(
        shlex.quote(word) if literal(word) == word else _spelled(word) for word in words
    )


def _spelled(word: str) -> str:
    data = word.encode("utf-8", "surrogateescape")
    return "$'" + "".join(_BYTES[byte] for byte in data) + "'"


# Of a byte's two hexadecimal digits none can run into the letter behind it.
_BYTES = [chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in range(256)]
_BYTES[ord("'")], _BYTES[ord("\\")] = "\\'", "\\\\"

# C0 without tab and newline, DEL, C1, and halves of surrogate pairs (bytes that were not UTF-8).
_CONTROL = "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
_CONTROL_NAMES = {
    "\x00": "a NUL",
    "\x07": "a bell",
    "\x08": "a backspace",
    "\r": "a carriage return",
    "\x1b": "an escape character",
    "\x7f": "a delete character",
}


def find_control(text: str) -> tuple[int, str] | None:
    """The first character that must not be sent to a terminal: its index and what it is."""
    found = re.search(_CONTROL, text)
    if found is None:
        return None
    character = found[0]
    kind = "a byte that is not UTF-8" if character >= "\ud800" else "a control character"
    return found.start(), f"{_CONTROL_NAMES.get(character, kind)} (U+{ord(character):04X})"


def strip_controls(text: str) -> str:
    """The text without the characters that must not be sent to a terminal."""
    return re.sub(_CONTROL, "", text)
