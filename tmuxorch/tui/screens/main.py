"""The screen people live in: moving about, looking, and the way to the agents' windows."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType

from tmuxorch.errors import NotRunning
from tmuxorch.model import Agent, AgentId, State, Status
from tmuxorch.tui import actions, keys
from tmuxorch.tui.screens.deeds import Deeds
from tmuxorch.tui.screens.page import Page
from tmuxorch.tui.snapshot import Tab
from tmuxorch.tui.widgets.agent_list import AgentList
from tmuxorch.tui.widgets.bars import KeyBar, TabBar
from tmuxorch.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from textual.widgets import Input

    from tmuxorch.service.context import Context
    from tmuxorch.service.workers.attaching import Takeover

# Which actions need what of the selected agent.
_NEED_ROW = {"attach", "send", "remove", "restart", "rename", "diff", "merge", "shell", "why",
             "mark", "mark_all"}  # fmt: skip
_NEED_RUNNING = {"send", "stop"}


class MainScreen(Deeds):
    BINDINGS: ClassVar[list[BindingType]] = list(keys.BINDINGS)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether the key does anything here and now; the bottom line follows it."""
        chosen = self.chosen
        if action in _NEED_ROW and not chosen:
            return False
        if action in _NEED_RUNNING:
            return any(row.state is State.RUNNING for row in chosen)
        if action == "restart":
            return any(row.ended or row.state is State.RUNNING for row in chosen)
        if action == "next_waiting":
            return any(row.status is Status.WAITING for row in self.rows)
        if action == "everywhere":
            return self.orch.setting.repo is not None
        return True

    # -- moving about ----------------------------------------------------------------------

    def _at(self) -> int:
        return next((i for i, row in enumerate(self.rows) if row.id == self.selected), 0)

    def _go(self, index: int) -> None:
        if self.rows:
            self.select(self.rows[max(0, min(index, len(self.rows) - 1))].id)

    def action_move(self, by: int) -> None:
        self._go(self._at() + by)

    def action_first(self) -> None:
        self._go(0)

    def action_last(self) -> None:
        self._go(len(self.rows) - 1)

    def action_go_to(self, number: int) -> None:
        if number <= len(self.rows):
            self._go(number - 1)

    def action_next_waiting(self) -> None:
        at = self._at()
        for row in (*self.rows[at + 1 :], *self.rows[: at + 1]):
            if row.status is Status.WAITING:
                self.select(row.id)
                return

    def action_mark(self) -> None:
        if self.selected is not None:
            self.marked ^= {self.selected}
            self.action_move(1)

    def action_mark_all(self) -> None:
        shown = {row.id for row in self.rows}
        self.marked = set() if self.marked >= shown else shown
        self.update()

    def action_everywhere(self) -> None:
        self.everywhere = not self.everywhere
        self.update()

    def action_clear(self) -> None:
        self.marked.clear()
        for field in self._fields():
            field.value = ""
        self._close_filter()

    def _fields(self) -> list[Input]:
        """The field of the filter, once there is one."""
        from textual.widgets import Input

        return list(self.query("#filter").results(Input))

    async def action_filter(self) -> None:
        if not self._fields():
            from textual.widgets import Input

            field = Input(id="filter", compact=True, placeholder="name, task, status\u2026")
            await self.query_one("#left").mount(field)
        for field in self._fields():
            field.display = True
            field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.words = event.value
        self.update()

    def on_input_submitted(self) -> None:
        self._close_filter()

    def _close_filter(self) -> None:
        for field in self._fields():
            field.display = bool(field.value)
            self.words = field.value
        self.query_one(AgentList).focus()
        self.update()

    def on_agent_list_pointed(self, message: AgentList.Pointed) -> None:
        self.select(message.agent_id)
        if message.twice:
            self.action_attach()

    # -- looking ---------------------------------------------------------------------------

    def action_tab(self, by: int) -> None:
        tabs = list(Tab)
        self.tab = tabs[(tabs.index(self.tab) + by) % len(tabs)]
        self.update()

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        self.tab = Tab(message.name)
        self.update()

    async def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        await self.run_action(message.action)

    def action_scroll(self, by: int) -> None:
        view = self.query_one("#view", TextView)
        view.scroll_relative(y=by * max(1, view.size.height // 2), animate=False)

    def action_diff(self) -> None:
        if (row := self.row) is not None:
            from tmuxorch.tui import looks

            agent, colours = row.agent, self.orch.colours
            self._open_page(
                f"{agent.task.name}: work since {agent.task.base}",
                lambda _: looks.diff_of(agent, colours),
            )

    def action_why(self) -> None:
        if (row := self.row) is not None:
            from tmuxorch.tui import looks

            agent = row.agent
            self._open_page(f"why {agent.task.name}", lambda ctx: looks.timeline_of(ctx, agent))

    def _open_page(self, title: str, look: Any) -> None:
        page = Page(title)
        self.app.push_screen(page)
        self.jobs.start(title, look, then=page.learn)

    def action_help(self) -> None:
        from tmuxorch.tui.screens.help import help_lines

        self.app.push_screen(Page("Keys", help_lines(self.app, self.orch.setting.keys or {})))

    def action_palette(self) -> None:
        self.app.action_command_palette()

    def action_history(self) -> None:
        from tmuxorch.tui.screens.history import HistoryScreen

        self.app.push_screen(HistoryScreen(self.orch.setting), self._restore_chosen)

    def _restore_chosen(self, entry: Any) -> None:
        if entry is not None:
            setting = self.orch.setting
            self.jobs.start(
                f"restoring {entry.task.name}",
                lambda ctx: actions.restore(ctx, setting, entry),
                then=self._restored,
            )

    def action_sweep(self) -> None:
        from tmuxorch.tui.screens.sweep import SweepScreen

        self.app.push_screen(SweepScreen(self.orch.setting))

    def action_quit(self) -> None:
        self.app.exit()

    # -- the way to a window ---------------------------------------------------------------

    def action_attach(self) -> None:
        row = self.row
        if row is None:
            return
        if row.ended:
            self._open_triage()
            return
        agent = row.agent
        self.jobs.start(
            f"finding {agent.task.name}",
            lambda ctx: _way(ctx, agent),
            then=lambda way: self._go_there(agent, way),
        )

    def _go_there(self, agent: Agent, way: Takeover | str | None) -> None:
        if isinstance(way, str):
            self.say(way, "warning")
        elif way is None:
            self.say(f"you were at {agent.task.name}; prefix L (switch-client -l) goes there again")
        else:
            said = self.orch.terminal.lend(way.argv, way.environ)
            self.say(said or f"back from {agent.task.name}", "warning" if said else "information")
            self.update()

    def action_shell(self) -> None:
        if (row := self.row) is None:
            return
        worktree = row.agent.task.worktree
        if not os.path.isdir(worktree):
            self.say(f"the worktree {worktree} is not there", "warning")
            return
        environ = self.orch.setting.environ
        shell = shutil.which(environ.get("SHELL", ""), path=environ.get("PATH")) or "/bin/sh"
        said = self.orch.terminal.lend([shell], environ, cwd=worktree)
        if said:
            self.say(said, "warning")

    def _open_triage(self) -> None:
        row = self.row
        assert row is not None
        from tmuxorch.tui.screens.triage import Triage

        card = Triage(row)
        self.app.push_screen(card, lambda action: self._triaged(row.id, action))
        self.jobs.start(
            "looking at what it left",
            lambda ctx: (actions.observe_stake(row), actions.last_lines(ctx, row.agent, 12)),
            then=lambda found: card.learn(*found),
        )

    def _triaged(self, agent_id: AgentId, action: str | None) -> None:
        self.select(agent_id)
        if action:
            getattr(self, f"action_{action}")()


def _way(ctx: Context, agent: Agent) -> Takeover | str | None:
    """How to get there; a sentence if it has died meanwhile."""
    from tmuxorch.service.workers import attaching

    try:
        way = attaching.switch_or_take(ctx, agent)
    except NotRunning as e:
        return e.message
    if way is None:
        attaching.say_way_back(ctx, agent, agent.run.place.pane if agent.run.place else None)
    return way
