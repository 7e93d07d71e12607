"""Text on a whole screen: a diff, the reasons, the help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from tmuxorch.tui.lines import Plain, TextLine
from tmuxorch.tui.widgets.bars import KeyBar, Title
from tmuxorch.tui.widgets.text_view import TextView


class Page(ModalScreen[None]):
    """Scrolls like a pager."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back"),
        Binding("j,down", "scroll(1)", "down", show=False),
        Binding("k,up", "scroll(-1)", "up", show=False),
        Binding("space,pagedown", "page(1)", "page down", show=False),
        Binding("b,pageup", "page(-1)", "page up", show=False),
        Binding("g,home", "start", "start", show=False),
        Binding("G,end", "finish", "end", show=False),
        Binding("h,left", "aside(-8)", "left", show=False),
        Binding("l,right", "aside(8)", "right", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[TextLine] | None = None) -> None:
        super().__init__()
        self.heading = title
        self._lines = lines
        self._open = False

    def compose(self) -> ComposeResult:
        yield Title(f" {self.heading}")
        yield TextView(classes="page")
        yield KeyBar()

    def on_mount(self) -> None:
        self._open = True
        self.learn(self._lines if self._lines is not None else [Plain("looking\u2026", "label")])
        self.query_one(KeyBar).tell(
            [
                ("j k", "scroll", ""),
                ("space b", "page", ""),
                ("g G", "ends", ""),
                ("h l", "sideways", ""),
                ("Esc", "back", "leave"),
            ]
        )

    def on_unmount(self) -> None:
        self._open = False

    def learn(self, lines: Sequence[TextLine]) -> None:
        self._lines = lines
        if self._open:
            self.query_one(TextView).show(lines, fresh=True)

    @property
    def text(self) -> str:
        return self.query_one(TextView).text

    def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        if message.action == "leave":
            self.dismiss(None)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        self.query_one(TextView).scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        view = self.query_one(TextView)
        view.scroll_relative(y=by * max(1, view.size.height - 2), animate=False)

    def action_aside(self, by: int) -> None:
        self.query_one(TextView).scroll_relative(x=by, animate=False)

    def action_start(self) -> None:
        self.query_one(TextView).scroll_to(y=0, animate=False)

    def action_finish(self) -> None:
        view = self.query_one(TextView)
        view.scroll_to(y=view.max_scroll_y, animate=False)
