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
from tmuxorch.tui import actions, keys
from tmuxorch.tui.hangup import ending_with_terminal
from tmuxorch.tui.highlight import Highlighter
from tmuxorch.tui.jobs import Jobs, Work
from tmuxorch.tui.mailbox import Mailbox
from tmuxorch.tui.net import Net
from tmuxorch.tui.screens.board import Arrived, Coloured, Counted
from tmuxorch.tui.screens.main import MainScreen
from tmuxorch.tui.snapshot import Focus, Look, Row, Snapshot, WatcherSeen
from tmuxorch.tui.terminal import RealTerminal, Terminal
from tmuxorch.tui.themes import DARK, LIGHT, theme_for

if TYPE_CHECKING:
    from tmuxorch.config import Config
    from tmuxorch.model import AgentId
    from tmuxorch.service.context import Context
    from tmuxorch.tui.looker import Looker
    from tmuxorch.tui.reader import Reader
    from tmuxorch.tui.setting import Setting
    from tmuxorch.tui.snapshot import Changes
    from tmuxorch.tui.tally import Tally

WATCHER_S = 5.0  # between two tries to have a watcher


class TmuxorchApp(App[None]):
    """Opens on the agents of the setting's repository."""

    CSS_PATH = os.path.join(os.path.dirname(__file__), "tmuxorch.tcss")
    TITLE = "tmuxorch"
    BINDINGS: ClassVar[list[BindingType]] = []
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, setting: Setting, prepare: Work | None = None) -> None:
        super().__init__()
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        # Before it runs: a change of theme reads all styles anew.
        self.theme = setting.theme or theme_for(setting.environ)
        self.setting = setting
        self._prepare = prepare
        self.configured = False
        self.board = MainScreen()
        self.terminal: Terminal = RealTerminal(self)
        self._net = Net()
        self.jobs = Jobs(self._open_context, self._post)
        self.snapshots: Mailbox[Snapshot] = Mailbox(lambda: self._post(Arrived()))
        self.looks: Mailbox[Look] = Mailbox(lambda: self._post(Arrived()))
        self.colours = Highlighter(lambda: self._post(Coloured()))
        self._reader: Reader | None = None
        self._looker: Looker | None = None
        self._tally: Tally | None = None
        self._running_in: asyncio.AbstractEventLoop | None = None

    def get_default_screen(self) -> Screen[None]:
        return self.board

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), self._net]

    def _set_pointer_shape(self, shape: str) -> None:
        """Textual would say it as an OSC; that none leaves is easier to see if there is none."""

    def on_mount(self) -> None:
        self._running_in = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._running_in.add_signal_handler(number, self.exit)
        # After the first frame: a newcomer sees the screen before anything is looked up.
        self.call_after_refresh(self._start_threads)

    def _start_threads(self) -> None:
        from tmuxorch.tui.later import Looker, Reader, Tally

        self._reader = Reader(self.setting.state_dir, self.snapshots.put, self._observe_watcher)
        self._looker = Looker(self._open_context, self.looks.put, self.colours)
        self._tally = Tally(self._count)
        for thread in (self._reader, self._looker, self._tally):
            thread.start()
        self.set_interval(WATCHER_S, self._keep_watcher)
        self.jobs.start(
            "reading the configuration",
            lambda ctx: self.setting.load_config(ctx, None),
            then=self._take_config,
        )
        if self._prepare is not None:
            self.jobs.start("making the agents", self._prepare)

    def _take_config(self, config: Config) -> None:
        self.configured = True
        found = config.keys if self.setting.keys is None else self.setting.keys
        self.setting = replace(self.setting, keys=found, tmux_timeout_s=config.tmux.timeout_s)
        self.set_keymap({k: v for k, v in found.items() if k in keys.NAMES})
        if unknown := sorted(set(found) - keys.NAMES):
            self.board.say(
                f"[keys] in the configuration: no such action: {', '.join(unknown)}", "warning"
            )

    def look_at(self, focus: Focus) -> None:
        """Have the looker look at this from now on."""
        if self._looker is not None:
            self._looker.focus(focus)

    def count(self, rows: tuple[Row, ...]) -> None:
        """Have the lines of these counted."""
        if self._tally is not None:
            self._tally.rows(rows)

    def _keep_watcher(self) -> None:
        """A watcher that died is started again; without agents none is needed."""
        snapshot = self.board.snapshot
        if snapshot.rows and snapshot.watcher.known and not snapshot.watcher.alive:
            self.jobs.start("starting the watcher", actions.ensure_watcher)

    def _observe_watcher(self, state_dir: str) -> WatcherSeen:
        if self.setting.environ.get("TMUXORCH_WATCHER") == "off":
            return WatcherSeen(known=False, alive=False)
        return actions.observe_watcher(state_dir)

    def _open_context(self, narrate: Callable[[str], None] = lambda _: None) -> Context:
        return self.setting.open_context(narrate)

    def _post(self, message: Message) -> None:
        self.board.post_message(message)

    def _count(self, agent_id: AgentId, changes: Changes) -> None:
        self._post(Counted(agent_id, changes))

    def on_unmount(self) -> None:
        for thread in (self._reader, self._looker, self._tally):
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
        for active in self.board.active_bindings.values():
            binding = active.binding
            if active.enabled and binding.id and not binding.id.startswith("agent_"):
                key = self.get_key_display(binding)
                yield SystemCommand(
                    binding.description,
                    f"key {key}",
                    lambda action=binding.action: self.call_later(self.board.run_action, action),
                )


def run(setting: Setting, prepare: Work | None = None) -> int:
    """Show the screen until the person quits; agents go on.

    `prepare` is done beside it, after the first frame.
    """
    app = TmuxorchApp(setting, prepare)

    def finish() -> None:
        app.jobs.wait(lambda about: sys.stderr.write(f"finishing: {about}\n"))

    with ending_with_terminal(app.end_from_thread, finish):
        app.run()
    finish()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
