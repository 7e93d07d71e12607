"""A question with its facts: nothing is done before they are on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from tmuxorch.tui.lines import Plain, TextLine, folded
from tmuxorch.tui.widgets.bars import KeyBar, Title
from tmuxorch.tui.widgets.text_view import TextView

WIDTH = 52  # of a dialog on the smallest screen, until it is laid out


class Confirmation(ModalScreen[bool]):
    """Yes or no; `facts` may come later, and until then there is no yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "agree", "yes"),
        Binding("escape,n,q", "keep", "no"),
        Binding("j,down", "scroll(1)", "down", show=False),
        Binding("k,up", "scroll(-1)", "up", show=False),
    ]

    def __init__(
        self,
        title: str,
        facts: Sequence[TextLine] | None,
        *,
        yes: str,
        no: str = "keep",
    ) -> None:
        super().__init__()
        self.heading = title
        self._facts = facts
        self._yes, self._no = yes, no
        self._open = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Title(self.heading)
            yield TextView(classes="facts")
            yield KeyBar()

    def on_mount(self) -> None:
        self._open = True
        self.learn(self._facts)

    def on_unmount(self) -> None:
        self._open = False

    def learn(self, facts: Sequence[TextLine] | None) -> None:
        """The facts are known now."""
        self._facts = facts
        if not self._open or not self.query(KeyBar):  # its parts go before it is told
            return
        shown = (
            facts if facts is not None else [Plain("looking at what is at stake\u2026", "label")]
        )
        view = self.query_one(TextView)
        shown = folded(shown, view.size.width or WIDTH)
        view.styles.height = max(1, min(len(shown), self.app.size.height - 8))
        view.show(shown, fresh=True)
        yes = [("Enter", self._yes, "agree")] if facts is not None else []
        self.query_one(KeyBar).tell([*yes, ("Esc", self._no, "keep")])

    @property
    def text(self) -> str:
        return f"{self.heading}\n{self.query_one(TextView).text}"

    def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        self.action_agree() if message.action == "agree" else self.action_keep()

    def action_agree(self) -> None:
        if self._facts is not None:
            self.dismiss(True)

    def action_keep(self) -> None:
        self.dismiss(False)

    def action_scroll(self, by: int) -> None:
        self.query_one(TextView).scroll_relative(y=by, animate=False)
