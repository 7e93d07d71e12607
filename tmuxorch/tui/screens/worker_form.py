"""The form for a new worker."""

from __future__ import annotations

import os
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label

from tmuxorch.core.literal import literal
from tmuxorch.tui.screens.write import Paper
from tmuxorch.tui.service_calls import FilledForm, FormFacts
from tmuxorch.tui.widgets.bars import KeyBar, Title


class WorkerForm(ModalScreen[FilledForm | None]):
    """Task, agent, base and name; only the task matters, the rest has defaults."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", priority=True),
        Binding("ctrl+n", "other_agent", "next agent", priority=True),
        # Without priority Tab waits in the field's own queue, and what is typed right after it
        # still goes to the field before.
        Binding("tab", "app.focus_next", "next field", priority=True),
        Binding("shift+tab", "app.focus_previous", "previous field", priority=True),
    ]

    def __init__(self, repo: str, task: str = "") -> None:
        super().__init__()
        self._repo = repo
        self._wording = task
        self._agents: tuple[str, ...] = ()
        self._facts: FormFacts | None = None
        self._open = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="new"):
            yield Title(f"New worker in {os.path.basename(self._repo)}")
            yield Paper(id="task")
            with Horizontal(classes="fields"):
                yield from self._field("agent")
                yield from self._field("base")
                yield from self._field("name")
            yield Label("", id="problem", markup=False)
            yield KeyBar()

    def _field(self, name: str) -> ComposeResult:
        with Vertical(classes="field"):
            yield Label(name, classes="label")
            yield Input(id=name, compact=True)

    def on_mount(self) -> None:
        self._open = True
        paper = self.query_one(Paper)
        paper.text = self._wording
        paper.focus()
        self.query_one("#name", Input).placeholder = "from the task"
        self.query_one(KeyBar).tell(
            [
                ("Enter", "start", "start"),
                ("^j", "new line", "line"),
                ("\u2191", "earlier tasks", "up"),
                ("Tab", "next field", "tab"),
                ("^n", "next agent", "agent"),
                ("Esc", "leave", "leave"),
            ]
        )
        if self._facts is not None:
            self.learn(self._facts)

    def on_unmount(self) -> None:
        self._open = False

    def learn(self, facts: FormFacts) -> None:
        """What can be chosen is known now."""
        self._facts = facts
        if not self._open or not self.query(KeyBar):  # its parts go before it is told
            return
        self._agents = facts.agents
        agent, base = self.query_one("#agent", Input), self.query_one("#base", Input)
        agent.placeholder, base.placeholder = facts.default_agent, literal(facts.base)
        agent.suggester = SuggestFromList(facts.agents, case_sensitive=False)
        base.suggester = SuggestFromList(facts.bases)
        self.query_one(Paper).remember(facts.tasks)

    def complain(self, problem: str) -> None:
        self.query_one("#problem", Label).update(literal(problem))

    def on_paper_handed_in(self) -> None:
        self._hand_in()

    def on_input_submitted(self) -> None:
        self._hand_in()

    def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        match message.action:
            case "start":
                self._hand_in()
            case "line":
                self.query_one(Paper).insert("\n")
            case "agent":
                self.action_other_agent()
            case "tab":
                self.focus_next()
            case "leave":
                self.dismiss(None)

    def _hand_in(self) -> None:
        agent, base, name = (
            self.query_one(f"#{field}", Input).value.strip() for field in ("agent", "base", "name")
        )
        if self._agents and agent and agent not in self._agents:
            self.complain(f"there is no agent {agent!r}; there are: {', '.join(self._agents)}")
            return
        self.dismiss(FilledForm(self._repo, self.query_one(Paper).text.strip(), agent, base, name))

    def action_other_agent(self) -> None:
        """The next of the agents, for those who do not remember how they are spelled."""
        field = self.query_one("#agent", Input)
        if self._agents:
            known = list(self._agents)
            current = field.value or field.placeholder
            after = known.index(current) + 1 if current in known else 0
            field.value = known[after % len(known)]

    def action_leave(self) -> None:
        self.dismiss(None)
