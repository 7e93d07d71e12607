"""A list to choose from, with more about the highlighted line below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList

from tmuxorch.core.literal import literal
from tmuxorch.tui.lines import TextLine
from tmuxorch.tui.widgets.bars import KeyBar, Title
from tmuxorch.tui.widgets.text_view import TextView

T = TypeVar("T")


class ChoiceList(ModalScreen[T | None], Generic[T]):
    """Subclasses say what a line is, what is told of it and what Enter does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back"),
        Binding("j", "move(1)", "down", show=False),
        Binding("k", "move(-1)", "up", show=False),
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self.heading = title
        self.items: list[T] = []
        self._open = False

    def compose(self) -> ComposeResult:
        yield Title(f" {self.heading}")
        yield Input(id="search", compact=True, placeholder="search")
        yield OptionList(markup=False)
        yield TextView(id="about")
        yield KeyBar()

    def on_mount(self) -> None:
        self._open = True
        self.query_one("#search").display = False
        self.query_one(OptionList).focus()
        self.query_one(KeyBar).tell(self.offered())

    def on_unmount(self) -> None:
        self._open = False

    def learn(self, items: Sequence[T]) -> None:
        """These are the lines now; the highlight stays where it was."""
        # Only after it is open does anybody look anything up; its parts go before it is told.
        if not self._open or not self.query(OptionList):
            return
        options = self.query_one(OptionList)
        at = options.highlighted or 0
        self.items = list(items)
        options.set_options([Content(literal(self.line(item))) for item in items])
        if items:
            options.highlighted = min(at, len(items) - 1)
        else:
            self.query_one("#about", TextView).show(self.empty(), fresh=True)

    @property
    def highlighted(self) -> T | None:
        at = self.query_one(OptionList).highlighted
        return self.items[at] if at is not None and at < len(self.items) else None

    def on_option_list_option_highlighted(self) -> None:
        item = self.highlighted
        if item is not None:
            self.query_one("#about", TextView).show(self.about(item), fresh=True)

    def action_move(self, by: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if by > 0 else options.action_cursor_up()

    def action_leave(self) -> None:
        self.dismiss(None)

    async def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        await self.run_action(message.action)

    # -- what a subclass says ----------------------------------------------------------------

    def line(self, item: T) -> str:
        raise NotImplementedError

    def about(self, item: T) -> list[TextLine]:
        raise NotImplementedError

    def empty(self) -> list[TextLine]:
        raise NotImplementedError

    def offered(self) -> list[tuple[str, str, str]]:
        raise NotImplementedError
