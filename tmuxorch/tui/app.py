"""The application: threads that look, mailboxes they fill, and the screen that shows it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen

from tmuxorch.core.literal import strip_controls
from tmuxorch.tui import service_calls
from tmuxorch.tui.command import Group
from tmuxorch.tui.commands import BY_NAME
from tmuxorch.tui.hangup import ending_with_terminal
from tmuxorch.tui.highlight import Highlighter
from tmuxorch.tui.jobs import Jobs, Progress
from tmuxorch.tui.mailbox import Mailbox
from tmuxorch.tui.output_filter import OutputFilter
from tmuxorch.tui.screens.board import Arrived, BoardScreen, Coloured, Counted
from tmuxorch.tui.snapshot import AgentRow, Focus, Panel, Snapshot, WatcherSeen
from tmuxorch.tui.terminal import RealTerminal, Terminal
from tmuxorch.tui.themes import DARK, LIGHT, theme_for

if TYPE_CHECKING:
    from tmuxorch.config import Config
    from tmuxorch.model import AgentId
    from tmuxorch.service.context import Context
    from tmuxorch.tui.change_counter import ChangeCounter
    from tmuxorch.tui.panel_reader import PanelReader
    from tmuxorch.tui.snapshot import Changes
    from tmuxorch.tui.snapshot_reader import SnapshotReader
    from tmuxorch.tui.workplace import Workplace

WATCHER_S = 5.0  # between two tries to have a watcher


class TmuxorchApp(App[None]):
    """Opens on the agents of the workplace's repository."""

    CSS_PATH = os.path.join(os.path.dirname(__file__), "tmuxorch.tcss")
    TITLE = "tmuxorch"
    BINDINGS: ClassVar[list[BindingType]] = []
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self, workplace: Workplace, prepare: Callable[[Context], object] | None = None
    ) -> None:
        super().__init__()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        # Before it runs: a change of theme reads all styles anew.
        self.theme = workplace.theme or theme_for(workplace.environ)
        self.workplace = workplace
        self._prepare = prepare
        self.configured = False
        self.board = BoardScreen()
        self.terminal: Terminal = RealTerminal(self)
        self._output_filter = OutputFilter()
        self.jobs = Jobs(self._open_context, self._post)
        self.snapshots: Mailbox[Snapshot] = Mailbox(lambda: self._post(Arrived()))
        self.panels: Mailbox[Panel] = Mailbox(lambda: self._post(Arrived()))
        self.colours = Highlighter(lambda: self._post(Coloured()))
        self._snapshot_reader: SnapshotReader | None = None
        self._panel_reader: PanelReader | None = None
        self._change_counter: ChangeCounter | None = None
        self._running_in: asyncio.AbstractEventLoop | None = None

    def get_default_screen(self) -> Screen[None]:
        return self.board

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), self._output_filter]

    def _set_pointer_shape(self, shape: str) -> None:
        """Textual would say it as an OSC; that none leaves is easier to see if there is none."""

    def on_mount(self) -> None:
        self._running_in = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._running_in.add_signal_handler(number, self.exit)
        # After the first frame: a newcomer sees the screen before anything is looked up.
        self.call_after_refresh(self._start_threads)

    def _start_threads(self) -> None:
        from tmuxorch.tui.preload import ChangeCounter, PanelReader, SnapshotReader

        self._snapshot_reader = SnapshotReader(
            self.workplace.state_dir, self.snapshots.put, self._observe_watcher
        )
        self._panel_reader = PanelReader(self._open_context, self.panels.put, self.colours)
        self._change_counter = ChangeCounter(self._count)
        for thread in (self._snapshot_reader, self._panel_reader, self._change_counter):
            thread.start()
        self.set_interval(WATCHER_S, self._keep_watcher)
        self.jobs.start(
            "reading the configuration",
            lambda ctx: self.workplace.load_config(ctx, None),
            then=self._take_config,
        )
        if self._prepare is not None:
            self.jobs.start("making the agents", self._prepare)

    def _take_config(self, config: Config) -> None:
        self.configured = True
        found = config.keys if self.workplace.keys is None else self.workplace.keys
        self.workplace = replace(self.workplace, keys=found, tmux_timeout_s=config.tmux.timeout_s)
        self.set_keymap({k: v for k, v in found.items() if k in BY_NAME})
        if unknown := sorted(found.keys() - BY_NAME.keys()):
            self.board.say(
                f"[keys] in the configuration: no such action: {', '.join(unknown)}", "warning"
            )

    def look_at(self, focus: Focus) -> None:
        """Have the panel reader look at this from now on."""
        if self._panel_reader is not None:
            self._panel_reader.focus(focus)

    def count(self, rows: tuple[AgentRow, ...]) -> None:
        """Have the lines of these counted."""
        if self._change_counter is not None:
            self._change_counter.rows(rows)

    def _keep_watcher(self) -> None:
        """A watcher that died is started again; without agents none is needed."""
        snapshot = self.board.roster.snapshot
        if snapshot.rows and snapshot.watcher.known and not snapshot.watcher.alive:
            self.jobs.start("starting the watcher", service_calls.ensure_watcher)

    def _observe_watcher(self, state_dir: str) -> WatcherSeen:
        if self.workplace.environ.get("TMUXORCH_WATCHER") == "off":
            return WatcherSeen(known=False, alive=False)
        return service_calls.observe_watcher(state_dir)

    def _open_context(self, progress: Progress = lambda *_: None) -> Context:
        return self.workplace.open_context(progress)

    def _post(self, message: Message) -> None:
        self.board.post_message(message)

    def _count(self, agent_id: AgentId, changes: Changes) -> None:
        self._post(Counted(agent_id, changes))

    def on_unmount(self) -> None:
        for thread in (self._snapshot_reader, self._panel_reader, self._change_counter):
            if thread is not None:
                thread.close()
        self.colours.close()

    async def on_event(self, event: events.Event) -> None:
        """What is pasted goes into fields that show it, so it is made harmless on its way in."""
        if isinstance(event, events.Paste):
            event.text = strip_controls(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        await super().on_event(event)

    def end_from_thread(self) -> None:
        """Quit; also of use when nothing moves any more."""
        if self._running_in is not None:
            with suppress(RuntimeError):  # closed already
                self._running_in.call_soon_threadsafe(self.exit)

    @property
    def failure(self) -> Exception | None:
        """What ended it, if it was no person."""
        return self._exception

    def panic(self, *_: object) -> None:
        """Close; the border of the command line says why. Textual would print local variables."""
        if self._exception is None:
            self._exception = RuntimeError("the terminal could not be read")
        self._close_messages_no_wait()

    def _fatal_error(self) -> None:
        self.panic()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield SystemCommand("theme", "other colours", self.action_change_theme)
        for name, active in self.board.bindings_in_force().items():
            command = BY_NAME[name]
            if active.enabled and command.group is not Group.NUMBERS:
                key = self.get_key_display(active.binding)
                yield SystemCommand(
                    command.words,
                    f"key {key}: {command.help}",
                    lambda name=name: self.call_later(self.board.action_command, name),
                )


def run(workplace: Workplace, prepare: Callable[[Context], object] | None = None) -> int:
    """Show the screen until the person quits; agents go on.

    `prepare` is done beside it, after the first frame.
    """
    app = TmuxorchApp(workplace, prepare)

    def finish() -> None:
        app.jobs.wait(lambda about: sys.stderr.write(f"finishing: {about}\n"))

    with ending_with_terminal(app.end_from_thread, finish):
        app.run()
    finish()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
