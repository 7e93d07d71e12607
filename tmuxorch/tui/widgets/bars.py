"""The lines at the top and bottom: how all are, which tab is shown, which keys work now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tmuxorch.core.literal import literal
from tmuxorch.model import Status
from tmuxorch.tui.list_lines import SIGNS
from tmuxorch.tui.snapshot import WatcherSeen
from tmuxorch.tui.widgets.styles import ground_style, letter_style

Part = tuple[str, str]
# A key, words for it, and its action.
Key = tuple[str, str, str]


def _literal(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple((literal(text), style) for text, style in parts)


class Bar(Widget):
    """One line of pieces, each with the name of its style; painted only when it differs.

    Where both sides do not fit, the right one gives way unless it matters.
    """

    right_matters = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._parts: tuple[Part, ...] = ()
        self._right: tuple[Part, ...] = ()

    def show(self, parts: Sequence[Part], right: Sequence[Part] = ()) -> None:
        shown = _literal(parts), _literal(right)
        if shown != (self._parts, self._right):
            self._parts, self._right = shown
            self.refresh()

    @property
    def text(self) -> str:
        return "".join(text for text, _ in (*self._parts, *self._right))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        if y:
            return Strip.blank(width, base)
        right = Strip(self._segments(self._right, base))
        left = Strip(self._segments(self._parts, base))
        if not self.right_matters and left.cell_length + right.cell_length > width:
            right = Strip([])
        left = left.adjust_cell_length(max(0, width - right.cell_length), base)
        return Strip.join([left, right]).adjust_cell_length(width, base)

    def _segments(self, parts: Sequence[Part], base: Style) -> list[Segment]:
        return [Segment(text, base + self._component(name)) for text, name in parts]

    def _component(self, name: str) -> Style:
        return letter_style(self, name) + ground_style(self, name)


class Title(Bar):
    """The name of a dialog."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.show([(text, "title")])


class Headline(Bar):
    """Counts by status, and whether the watcher is well."""

    def tell(
        self,
        place: str,
        counts: Sequence[tuple[Status, int]],
        watcher: WatcherSeen,
        trouble: str,
        marked: int,
    ) -> None:
        parts: list[Part] = [(f" {place} ", "title"), (" ", "")]
        for status, number in counts:
            style = "call" if status is Status.WAITING else status.value
            parts += [(f" {SIGNS[status]} {number} {status} ", style), (" ", "")]
        if marked:
            parts.append((f" {marked} marked ", "quiet"))
        if trouble:
            self.show([(f" {trouble} ", "alarm")])
        elif not watcher.known:
            self.show(parts)
        elif watcher.alive:
            self.right_matters = False
            self.show(parts, [("watcher well ", "quiet")])
        else:
            self.right_matters = True
            self.show(parts, [(" no watcher, starting one ", "alarm")])


class TabBar(Bar):
    """The names of the tabs, and the selected agent's."""

    class Chosen(Message):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def tell(self, names: Sequence[str], chosen: str, about: str) -> None:
        parts = [
            (f" {name.capitalize()} ", "chosen" if name == chosen else "tab") for name in names
        ]
        self._names = tuple(names)
        room = self.size.width - sum(cell_len(text) for text, _ in parts) - 3
        if cell_len(about) > room:
            about = set_cell_size(about, room - 1) + "\u2026" if room > 12 else ""
        self.show(parts, [(f"{about} ", "quiet")] if about else [])

    def on_click(self, event: events.Click) -> None:
        x = 0
        for (text, _), name in zip(self._parts, self._names, strict=True):
            x += cell_len(text)
            if event.x < x:
                self.post_message(self.Chosen(name))
                return


class KeyBar(Bar):
    """The keys that work here and now, as many as there is room for."""

    class Pressed(Message):
        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._keys: tuple[Key, ...] = ()
        self._shown: list[Key] = []

    def tell(self, keys: Sequence[Key]) -> None:
        """The most useful first; the last is always shown."""
        self._keys = tuple(keys)
        self._fill()

    def on_resize(self) -> None:
        self._fill()

    def _fill(self) -> None:
        if not self._keys:
            return
        *first, last = self._keys
        room = self.size.width - _width(last)
        self._shown = []
        for key in first:
            if (room := room - _width(key)) < 0:
                break
            self._shown.append(key)
        self._shown.append(last)
        parts: list[Part] = []
        for pressed, words, _ in self._shown:
            parts += [(f" {pressed}", "key"), (f" {words} ", "quiet")]
        self.show(parts)

    def on_click(self, event: events.Click) -> None:
        x = 0
        for index, (text, _) in enumerate(self._parts):
            x += cell_len(text)
            if event.x < x:
                self.post_message(self.Pressed(self._shown[index // 2][2]))
                return


def _width(key: Key) -> int:
    return cell_len(key[0]) + cell_len(key[1]) + 3
