"""The screen people live in: the agents on the left, what is known of the selected one right.

It shows, and hands on what comes in; what keys do is in the functions of `commands`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Container, Vertical
from textual.message import Message
from textual.screen import Screen

from tmuxorch.core.literal import first_line, literal
from tmuxorch.model import AgentId, HistoryEntry
from tmuxorch.tui import window_commands
from tmuxorch.tui.command import Command, Need
from tmuxorch.tui.commands import BY_NAME, COMMANDS, OFFERED, met_needs
from tmuxorch.tui.jobs import JobDone, Jobs, JobStepped
from tmuxorch.tui.lines import TextLine
from tmuxorch.tui.list_filter import ListFilter
from tmuxorch.tui.list_lines import count_statuses
from tmuxorch.tui.roster import Roster
from tmuxorch.tui.snapshot import AgentRow, Changes, Focus, Panel, Snapshot, Tab
from tmuxorch.tui.welcome import welcome_lines
from tmuxorch.tui.widgets.agent_list import AgentList
from tmuxorch.tui.widgets.bars import Headline, KeyBar, TabBar
from tmuxorch.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from textual.widgets import Input

    from tmuxorch.tui.app import TmuxorchApp
    from tmuxorch.tui.notices import Severity
    from tmuxorch.tui.workplace import Workplace

# Below so many columns the list stands above the view, not beside it.
_BREAKPOINTS = [(0, "-narrow"), (76, "-normal")]


class Arrived(Message):
    """Something is in the app's mailboxes."""


class Coloured(Message):
    """Code that is shown plainly has colours now."""


@dataclass
class Counted(Message):
    """How much an agent has written."""

    agent_id: AgentId
    changes: Changes


@dataclass
class Recent:
    """What was done on this screen that a command may come back to, the newest message first."""

    sent: list[str] = field(default_factory=list)
    removed: list[HistoryEntry] = field(default_factory=list)


class BoardScreen(Screen[None]):
    """Shows the newest snapshot and panel; keeps what the person chose."""

    HORIZONTAL_BREAKPOINTS = _BREAKPOINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(c.keys, f"command('{c.name}')", c.words, id=c.name) for c in COMMANDS
    ]

    def __init__(self) -> None:
        super().__init__()
        self.roster = Roster()
        self.recent = Recent()
        self.filter = ListFilter(self)
        self.tab = Tab.SCREEN
        self._shown: tuple[AgentId | None, Tab] | None = None
        self._met: frozenset[Need] = frozenset()
        self._open = False

    @property
    def orch(self) -> TmuxorchApp:
        return cast("TmuxorchApp", self.app)

    @property
    def jobs(self) -> Jobs:
        return self.orch.jobs

    @property
    def workplace(self) -> Workplace:
        return self.orch.workplace

    @property
    def commands(self) -> Sequence[Command]:
        return COMMANDS

    def open_card(self, row: AgentRow) -> None:
        """Show what one that has ended left."""
        from tmuxorch.tui.screens.triage import open_card

        open_card(self, row)

    @property
    def view(self) -> TextView:
        return self.query_one("#view", TextView)

    def compose(self) -> ComposeResult:
        yield Headline()
        with Container(id="body"):
            with Vertical(id="left"):
                yield AgentList()
            with Vertical(id="right"):
                yield TabBar()
                yield TextView(id="view")
        yield KeyBar()

    def on_mount(self) -> None:
        self._open = True
        self.roster.everywhere = self.workplace.repo is None
        self.focus_list()
        self.update()
        self.set_interval(1.0, self.update)

    def on_unmount(self) -> None:
        self._open = False

    # -- what the person does ----------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether the key does anything here and now; the bottom line follows it."""
        if action != "command":
            return True
        return BY_NAME[str(parameters[0])].needs in self._met

    async def action_command(self, name: str) -> None:
        done = BY_NAME[name].do(self)
        if isawaitable(done):
            await done

    async def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        await self.run_action(message.action)

    def on_agent_list_pointed(self, message: AgentList.Pointed) -> None:
        self.select(message.agent_id)
        if message.twice:
            window_commands.attach(self)

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        self.show_tab(Tab(message.name))

    def on_input_changed(self, event: Input.Changed) -> None:
        self.roster.words = event.value
        self.update()

    def on_input_submitted(self) -> None:
        self.filter.close()

    # -- what comes in -----------------------------------------------------------------

    def on_arrived(self) -> None:
        if (snapshot := self.orch.snapshots.take()) is not None:
            self._take_snapshot(snapshot)
        if (panel := self.orch.panels.take()) is not None:
            self._take_panel(panel)

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        from tmuxorch.tui.notices import end_notices

        before = self.roster.snapshot
        self.roster.take(snapshot)
        self.orch.count(snapshot.rows)
        self.update()
        for notice in end_notices(before, snapshot, own=self.roster.doing):
            self.say(notice.sentence, notice.severity)

    def _take_panel(self, panel: Panel) -> None:
        if panel.changes is not None and self.roster.changes.get(panel.id) != panel.changes:
            self.roster.changes[panel.id] = panel.changes
            self.update()
        if (panel.id, panel.tab) == (self.roster.selected, self.tab):
            self._show(panel.lines)

    def on_counted(self, message: Counted) -> None:
        self.roster.changes[message.agent_id] = message.changes
        self.update()

    def on_coloured(self) -> None:
        for view in self.app.screen.query(TextView):
            view.refresh()

    def on_job_stepped(self, message: JobStepped) -> None:
        self.roster.doing[message.agent_id] = message.phase
        self.update()

    def on_job_done(self, message: JobDone) -> None:
        for agent_id in message.ids:
            self.roster.doing.pop(agent_id, None)
        if message.failure:
            self.say(message.failure, "error")
        elif message.then is not None:
            message.then(message.result)
        self.update()

    # -- what is shown -----------------------------------------------------------------

    def select(self, agent_id: AgentId | None) -> None:
        self.roster.selected = agent_id
        self.update()

    def show_tab(self, tab: Tab) -> None:
        self.tab = tab
        self.update()

    def focus_list(self) -> None:
        self.query_one(AgentList).focus()

    def update(self) -> None:
        """Bring all parts up to date; each paints only what differs."""
        if not self._open:
            return
        roster, repo = self.roster, self.workplace.repo
        where = None if roster.everywhere else repo
        roster.arrange(where)
        self._met = met_needs(roster, in_repository=repo is not None)
        self.query_one(AgentList).show(roster.lines(time.time()), roster.selected)
        self.orch.look_at(Focus(roster.row, self.tab))
        self._update_bars(where)
        if not roster.rows:
            self._show(welcome_lines(roster.snapshot, words=roster.words, repo=repo))

    def _show(self, lines: Sequence[TextLine]) -> None:
        about = (self.roster.selected, self.tab)
        follow = self.tab in (Tab.SCREEN, Tab.TIMELINE)
        self.view.show(lines, follow=follow, fresh=about != self._shown)
        self._shown = about

    def _update_bars(self, where: str | None) -> None:
        roster = self.roster
        place = os.path.basename(where) if where else "all repositories"
        scope = [r for r in roster.snapshot.rows if where is None or r.agent.task.repo == where]
        self.query_one(Headline).tell(
            place if self.workplace.title == "tmuxorch" else self.workplace.title,
            count_statuses(scope),
            roster.snapshot.watcher,
            roster.snapshot.trouble,
            len(roster.marked),
        )
        row = roster.row
        about = f"{literal(row.agent.task.name)}  {first_line(row.agent.task.text)}" if row else ""
        self.query_one(TabBar).tell([tab.value for tab in Tab], self.tab, about)
        self._tell_keys()

    def _tell_keys(self) -> None:
        force = self.bindings_in_force()
        offered = [force[c.name] for c in OFFERED if c.name in force and c.is_timely(self)]
        self.query_one(KeyBar).tell(
            [
                (self.app.get_key_display(b.binding), b.binding.description, b.binding.action)
                for b in offered
                if b.enabled
            ]
        )

    def bindings_in_force(self) -> dict[str, ActiveBinding]:
        """By the names of the commands; of several keys the first, which is the one to show."""
        found: dict[str, ActiveBinding] = {}
        for active in self.active_bindings.values():
            if active.binding.id:
                found.setdefault(active.binding.id, active)
        return found

    def say(self, sentence: str, severity: Severity = "information") -> None:
        """A sentence in the corner; errors stay longer."""
        shown = "\n".join(literal(line) for line in sentence.split("\n")[:12])
        timeout = 12 if severity == "error" else 6
        self.notify(shown, severity=severity, timeout=timeout, markup=False)
