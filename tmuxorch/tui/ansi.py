"""A terminal's screen as tmux tells it: colours are kept, every other escape is dropped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style

from tmuxorch.core.literal import literal
from tmuxorch.tui.lines import Span

_SGR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
# Any other sequence: CSI, OSC and its like up to their end, charset shifts, single ones.
_OTHER = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x1b\\|\x07|$)"
    r"|\x1b[ -/]+[0-~]|\x1b[0-Z=>c]|[\x0e\x0f]"
)
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 5: "blink", 7: "reverse", 9: "strike"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 25: ("blink",),
        27: ("reverse",), 29: ("strike",)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pen:
    """How the next character looks."""

    on: frozenset[str] = frozenset()
    front: Color | None = None
    back: Color | None = None

    def style(self) -> Style:
        return _style(self)


@lru_cache(maxsize=1024)
def _style(pen: Pen) -> Style:
    return Style(color=pen.front, bgcolor=pen.back, **dict.fromkeys(pen.on, True))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ScreenLine:
    """A line of a terminal, and the pen it begins with."""

    text: str
    pen: Pen

    @property
    def width_hint(self) -> int:
        return len(_OTHER.sub("", _SGR.sub("", self.text)))

    def spans(self) -> list[Span]:
        return _pieces(self.text, self.pen)[0]


def screen_lines(captured: str) -> list[ScreenLine]:
    """What `capture-pane -e` printed, without the empty lines below."""
    lines, pen = [], Pen()
    for text in captured.split("\n"):
        lines.append(ScreenLine(text, pen))
        if "\x1b" in text:
            pen = _pieces(text, pen)[1]
    while lines and not _OTHER.sub("", _SGR.sub("", lines[-1].text)).strip():
        lines.pop()
    return lines


@lru_cache(maxsize=2048)
def _pieces(text: str, pen: Pen) -> tuple[list[Span], Pen]:
    spans: list[Span] = []
    # Split at colour changes: text, its parameters, text, …
    for index, part in enumerate(_SGR.split(text)):
        if index % 2:
            pen = _change(pen, part)
        elif clean := literal(_OTHER.sub("", part), icons=True):
            spans.append((clean, pen.style()))
    return spans, pen


def _change(pen: Pen, parameters: str) -> Pen:
    """The pen after `ESC [ parameters m`; what is not understood changes nothing."""
    numbers = [int(n) if n else 0 for n in parameters.replace(":", ";").split(";")][:64]
    on, front, back = set(pen.on), pen.front, pen.back
    while numbers:
        n = numbers.pop(0)
        if n == 0:
            on, front, back = set(), None, None
        elif n in _ON:
            on.add(_ON[n])
        elif n in _OFF:
            on.difference_update(_OFF[n])
        elif n in (38, 48):
            colour = _extended(numbers)
            front, back = (colour, back) if n == 38 else (front, colour)
        elif 30 <= n <= 37 or 90 <= n <= 97:
            front = Color.from_ansi(n - 30 if n < 40 else n - 82)
        elif 40 <= n <= 47 or 100 <= n <= 107:
            back = Color.from_ansi(n - 40 if n < 50 else n - 92)
        elif n == 39:
            front = None
        elif n == 49:
            back = None
    return Pen(frozenset(on), front, back)


def _extended(numbers: list[int]) -> Color | None:
    """`5;n` of a palette or `2;r;g;b`; takes what it uses from `numbers`."""
    kind = numbers.pop(0) if numbers else 0
    if kind == 5 and numbers:
        return Color.from_ansi(min(numbers.pop(0), 255))
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = (min(numbers.pop(0), 255) for _ in range(3))
        return Color.from_triplet(ColorTriplet(red, green, blue))
    return None
