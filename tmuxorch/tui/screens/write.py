"""Dialogs to write in: a message, a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from tmuxorch.core.literal import is_plain_text
from tmuxorch.tui.lines import Plain, TextLine, folded
from tmuxorch.tui.screens.confirmation import WIDTH
from tmuxorch.tui.widgets.bars import KeyBar, Title
from tmuxorch.tui.widgets.text_view import TextView


class Paper(TextArea):
    """Several lines; Enter hands them in, ctrl+j begins a new one, up and down recall old ones."""

    class HandedIn(Message):
        pass

    def __init__(self, earlier: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(soft_wrap=True, show_line_numbers=False, tab_behavior="focus", **kwargs)
        self._earlier: list[str] = []
        self.remember(earlier)
        self._at = -1
        self._draft = ""

    def remember(self, earlier: Sequence[str]) -> None:
        # What is not seen as it is would be handed in as something else than was seen.
        self._earlier = [text for text in earlier if is_plain_text(text)]

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.prevent_default().stop()
            self.post_message(self.HandedIn())
        elif event.key in ("ctrl+j", "shift+enter", "alt+enter", "ctrl+enter"):
            event.prevent_default().stop()
            self.insert("\n")
        elif event.key == "up" and self.cursor_location[0] == 0:
            event.prevent_default().stop()
            self._recall(1)
        elif event.key == "down" and self.cursor_location[0] == self.document.line_count - 1:
            event.prevent_default().stop()
            self._recall(-1)
        else:
            await super()._on_key(event)

    def _recall(self, by: int) -> None:
        if not -1 <= self._at + by < len(self._earlier):
            return
        if self._at == -1:
            self._draft = self.text
        self._at += by
        self.text = self._draft if self._at == -1 else self._earlier[self._at]
        self.move_cursor(self.document.end)


class WriteMessage(ModalScreen[str]):
    """A message to one agent or to many; "" when the person thought better of it.

    After a `refusal` it says so, and holds the `draft` that was not taken.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", priority=True)]

    def __init__(
        self, title: str, earlier: Sequence[str] = (), *, draft: str = "", refusal: str = ""
    ) -> None:
        super().__init__()
        self.heading = title
        self._earlier = earlier
        self._draft = draft
        self._refusal = refusal

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Title(self.heading)
            if self._refusal:
                yield TextView(classes="facts")
            yield Paper(self._earlier)
            yield KeyBar()

    def on_mount(self) -> None:
        if self._refusal:
            facts = self.query_one(TextView)
            lines: list[TextLine] = [Plain(line, "warn") for line in self._refusal.splitlines()]
            lines = folded(lines, facts.size.width or WIDTH)
            facts.styles.height = max(1, min(len(lines), self.app.size.height - 18))
            facts.show(lines, fresh=True)
        paper = self.query_one(Paper)
        paper.text = self._draft
        paper.move_cursor(paper.document.end)
        paper.focus()
        self.query_one(KeyBar).tell(
            [("Enter", "send", "send"), ("^j", "new line", "line"), ("Esc", "leave", "leave")]
        )

    def on_paper_handed_in(self) -> None:
        text = self.query_one(Paper).text
        if text.strip():
            self.dismiss(text)

    def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        match message.action:
            case "send":
                self.on_paper_handed_in()
            case "line":
                self.query_one(Paper).insert("\n")
            case _:
                self.dismiss("")

    def action_leave(self) -> None:
        self.dismiss("")


class WriteName(ModalScreen[str]):
    """One line, such as a name; "" when the person thought better of it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", priority=True)]

    def __init__(self, title: str, value: str) -> None:
        super().__init__()
        self.heading = title
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Title(self.heading)
            yield Input(self._value, select_on_focus=True)
            yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self.query_one(KeyBar).tell([("Enter", "rename", "ok"), ("Esc", "leave", "leave")])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())

    def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        self.dismiss(self.query_one(Input).value.strip() if message.action == "ok" else "")

    def action_leave(self) -> None:
        self.dismiss("")
