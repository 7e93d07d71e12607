"""The main screen's parts and what it knows; what keys do is in `deeds` and `main`."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.containers import Container, Vertical
from textual.message import Message
from textual.screen import Screen

from tmuxorch.core.literal import first_line, literal
from tmuxorch.model import AgentId, State, Status
from tmuxorch.tui import keys
from tmuxorch.tui.board import count_statuses, lines_of, visible_rows
from tmuxorch.tui.jobs import JobDone, Jobs, JobStepped
from tmuxorch.tui.lines import Plain, TextLine
from tmuxorch.tui.snapshot import Changes, Focus, Look, Row, Snapshot, Tab
from tmuxorch.tui.widgets.agent_list import AgentList
from tmuxorch.tui.widgets.bars import Headline, KeyBar, TabBar
from tmuxorch.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from tmuxorch.tui.app import TmuxorchApp

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


class BoardScreen(Screen[None]):
    """Shows the newest snapshot and look; keeps what the person chose."""

    HORIZONTAL_BREAKPOINTS = _BREAKPOINTS

    def __init__(self) -> None:
        super().__init__()
        self.snapshot = Snapshot()
        self.rows: list[Row] = []
        self.selected: AgentId | None = None
        self.tab = Tab.SCREEN
        self.everywhere = False
        self.words = ""
        self.marked: set[AgentId] = set()
        self.steps: dict[AgentId, str] = {}
        self.changes: dict[AgentId, Changes] = {}
        self._shown: tuple[AgentId | None, Tab] | None = None
        self._open = False

    @property
    def orch(self) -> TmuxorchApp:
        return cast("TmuxorchApp", self.app)

    @property
    def jobs(self) -> Jobs:
        return self.orch.jobs

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
        self.everywhere = self.orch.setting.repo is None
        self.query_one(AgentList).focus()
        self.update()
        self.set_interval(1.0, self.update)

    def on_unmount(self) -> None:
        self._open = False

    # -- what comes in -----------------------------------------------------------------

    def on_arrived(self) -> None:
        if (snapshot := self.orch.snapshots.take()) is not None:
            self._take_snapshot(snapshot)
        if (look := self.orch.looks.take()) is not None:
            self._take_look(look)

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        before = {row.id: row for row in self.snapshot.rows}
        first = not self.snapshot.loaded
        self.snapshot = snapshot
        alive = {row.id for row in snapshot.rows}
        self.marked &= alive
        self.changes = {k: v for k, v in self.changes.items() if k in alive}
        self.orch.count(snapshot.rows)
        self.update()
        if not first:
            for row in snapshot.rows:
                self._tell_end(before.get(row.id), row)

    def _tell_end(self, before: Row | None, row: Row) -> None:
        """A sentence when an agent ended by itself."""
        from tmuxorch.core.view import describe_exit

        if before is None or not _ran(before) or _ran(row) or not row.ended:
            return
        if row.agent.run.stopped or row.id in self.steps:
            return
        if row.state is State.LOST:
            self.say(f"{row.agent.task.name} is lost: its tmux server has gone", "warning")
        elif row.status is Status.DONE:
            self.say(f"{row.agent.task.name} has finished; Enter shows what it left")
        elif row.status is Status.CRASHED:
            self.say(f"{row.agent.task.name} crashed: {describe_exit(row.exit)}", "warning")

    def _take_look(self, look: Look) -> None:
        if look.changes is not None and self.changes.get(look.id) != look.changes:
            self.changes[look.id] = look.changes
            self.update()
        if (look.id, look.tab) == (self.selected, self.tab):
            self._show(look.lines)

    def on_counted(self, message: Counted) -> None:
        self.changes[message.agent_id] = message.changes
        self.update()

    def _show(self, lines: Sequence[TextLine]) -> None:
        about = (self.selected, self.tab)
        follow = self.tab in (Tab.SCREEN, Tab.TIMELINE)
        self.query_one("#view", TextView).show(lines, follow=follow, fresh=about != self._shown)
        self._shown = about

    def on_coloured(self) -> None:
        for view in self.app.screen.query(TextView):
            view.refresh()

    def on_job_stepped(self, message: JobStepped) -> None:
        word = literal(message.step.split(" ")[0])
        name = message.step.rpartition(" ")[2]
        for row in self.snapshot.rows:
            if row.id in message.ids and (len(message.ids) == 1 or row.agent.task.name == name):
                self.steps[row.id] = word
        self.update()

    def on_job_done(self, message: JobDone) -> None:
        for agent_id in message.ids:
            self.steps.pop(agent_id, None)
        if message.failure:
            self.say(message.failure, "error")
        elif message.then is not None:
            message.then(message.result)
        self.update()

    # -- what is shown -----------------------------------------------------------------

    @property
    def row(self) -> Row | None:
        """The selected agent."""
        return next((row for row in self.rows if row.id == self.selected), None)

    @property
    def chosen(self) -> list[Row]:
        """The marked agents that are shown, or else the selected one."""
        marked = [row for row in self.rows if row.id in self.marked]
        if marked:
            return marked
        return [self.row] if self.row else []

    def select(self, agent_id: AgentId | None) -> None:
        self.selected = agent_id
        self.update()

    def update(self) -> None:
        """Bring all parts up to date; each paints only what differs."""
        if not self._open:
            return
        where = None if self.everywhere else self.orch.setting.repo
        index = next((i for i, row in enumerate(self.rows) if row.id == self.selected), 0)
        self.rows = visible_rows(self.snapshot.rows, repo=where, words=self.words)
        ids = [row.id for row in self.rows]
        if self.selected not in ids:
            self.selected = ids[min(index, len(ids) - 1)] if ids else None
        lines = lines_of(
            self.rows,
            now=time.time(),
            marked=self.marked,
            steps=self.steps,
            changes=self.changes,
            headings=self.everywhere,
        )
        self.query_one(AgentList).show(lines, self.selected)
        self.orch.look_at(Focus(self.row, self.tab))
        self._update_bars(where)
        if not self.rows:
            self._show(self._welcome())

    def _update_bars(self, where: str | None) -> None:
        place = os.path.basename(where) if where else "all repositories"
        scope = [r for r in self.snapshot.rows if where is None or r.agent.task.repo == where]
        self.query_one(Headline).tell(
            place if self.orch.setting.title == "tmuxorch" else self.orch.setting.title,
            count_statuses(scope),
            self.snapshot.watcher,
            self.snapshot.trouble,
            len(self.marked),
        )
        row = self.row
        about = f"{literal(row.agent.task.name)}  {first_line(row.agent.task.text)}" if row else ""
        self.query_one(TabBar).tell([tab.value for tab in Tab], self.tab, about)
        self._tell_keys()

    def _tell_keys(self) -> None:
        bindings: dict[str, ActiveBinding] = {}
        for active in self.active_bindings.values():
            if active.binding.id:  # of several keys the first is the one to show
                bindings.setdefault(active.binding.id, active)
        offered = [bindings[name] for name in self.offered() if name in bindings]
        self.query_one(KeyBar).tell(
            [
                (self.app.get_key_display(b.binding), b.binding.description, b.binding.action)
                for b in offered
                if b.enabled
            ]
        )

    def offered(self) -> Sequence[str]:
        """The names of the keys that the bottom line offers, if they work now."""
        return keys.OFFERED

    def _welcome(self) -> list[TextLine]:
        if not self.snapshot.loaded:
            return [Plain("")]
        if self.words:
            return [Plain(f"no agent fits \u201c{self.words}\u201d; Esc shows all again", "label")]
        hidden = len(self.snapshot.rows)
        if hidden:
            others = [Plain(f"a shows the {hidden} in other repositories", "label")]
            return [Plain("No agents in this repository.", "strong"), Plain(""), *others]
        if self.orch.setting.repo is None:
            return [
                Plain("No agents yet, and this is no git repository.", "strong"),
                Plain(""),
                Plain("q      quits; then start tmuxorch inside a repository"),
                Plain("       or try `tmuxorch demo`: six scripted agents, nothing stays"),
            ]
        return [
            Plain("No agents yet.", "strong"),
            Plain(""),
            Plain("n      gives one a task: it gets a branch, a worktree and a window of its own"),
            Plain("?      shows all keys"),
            Plain("q      quits; agents go on without this screen"),
            Plain(""),
            Plain("`tmuxorch demo` shows six scripted agents in a throw-away repository", "label"),
        ]

    def say(self, sentence: str, severity: Any = "information") -> None:
        """A sentence in the corner; errors stay longer."""
        shown = "\n".join(literal(line) for line in sentence.split("\n")[:12])
        timeout = 12 if severity == "error" else 6
        self.notify(shown, severity=severity, timeout=timeout, markup=False)


def _ran(row: Row) -> bool:
    """Whether it runs as far as anybody could say; an end is told once its manner is known."""
    return row.state is State.RUNNING or row.status is Status.ENDED
