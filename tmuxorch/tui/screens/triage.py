"""The card of a worker that has ended: what it left, and one key for each way on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from tmuxorch.tui import service_calls
from tmuxorch.tui.commands import BY_NAME
from tmuxorch.tui.lines import Plain, TextLine
from tmuxorch.tui.panels import describe_end
from tmuxorch.tui.service_calls import StakeReport
from tmuxorch.tui.snapshot import AgentRow
from tmuxorch.tui.widgets.bars import KeyBar, Title
from tmuxorch.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from tmuxorch.model import AgentId
    from tmuxorch.tui.screens.board import BoardScreen

LAST_LINES = 12
# Commands, and what they mean for one that has ended.
WAYS = {"restart": "resume", "diff": "review", "merge": "merge", "remove": "remove"}


class Triage(ModalScreen[str]):
    """Dismissed with the name of the command that the person chose, "" for none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(BY_NAME[c].keys, f"choose('{c}')", words) for c, words in WAYS.items()),
        Binding("escape,q,enter", "choose('')", "leave"),
    ]

    def __init__(self, row: AgentRow) -> None:
        super().__init__()
        self._row = row
        self._found: tuple[StakeReport | None, Sequence[str]] = (None, ())
        self._open = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Title(f"{self._row.agent.task.name}: {self._row.status}")
            yield TextView(classes="facts")
            yield KeyBar()

    def on_mount(self) -> None:
        self._open = True
        self.learn(*self._found)
        ways = [(BY_NAME[c].keys.split(",")[0], words, c) for c, words in WAYS.items()]
        self.query_one(KeyBar).tell([*ways, ("Esc", "leave", "")])

    def on_unmount(self) -> None:
        self._open = False

    def learn(self, stake: StakeReport | None, last: Sequence[str]) -> None:
        """What it left is known now."""
        self._found = (stake, last)
        if not self._open or not self.query(KeyBar):  # its parts go before it is told
            return
        how, _ = describe_end(self._row)
        lines: list[TextLine] = [Plain(f"{how}.")]
        if stake is None:
            lines.append(Plain("looking at what it left\u2026", "label"))
        elif stake.problem:
            lines.append(Plain(stake.problem, "warn"))
        elif stake.lines:
            lines += [Plain(""), *(Plain(f"\u2022 {line}") for line in stake.lines)]
        else:
            lines.append(Plain("It left no work behind.", "label"))
        if last:
            lines += [Plain(""), Plain("Its last lines:", "label"), *(Plain(line) for line in last)]
        view = self.query_one(TextView)
        view.styles.height = max(1, min(len(lines), self.app.size.height - 8))
        view.show(lines, fresh=True)

    @property
    def text(self) -> str:
        return self.query_one(TextView).text

    def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        self.dismiss(message.action)

    def action_choose(self, command: str) -> None:
        self.dismiss(command)


def open_card(board: BoardScreen, row: AgentRow) -> None:
    """Show the card, and do what the person chooses on it."""
    card = Triage(row)
    board.app.push_screen(card, lambda command: _do_chosen(board, row.id, command))
    board.jobs.start(
        "looking at what it left",
        lambda ctx: (
            service_calls.observe_stake(row),
            service_calls.last_lines(ctx, row.agent, LAST_LINES),
        ),
        then=lambda found: card.learn(*found),
    )


def _do_chosen(board: BoardScreen, agent_id: AgentId, command: str | None) -> None:
    board.select(agent_id)
    if command:
        board.call_later(board.action_command, command)
