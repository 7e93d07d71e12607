"""The thread that looks at the selected agent for the tab that is shown, and at nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tmuxorch.errors import TmuxFailed, TmuxorchError
from tmuxorch.model import AgentId, PaneId, State
from tmuxorch.service.context import Context
from tmuxorch.service.health.panes import Servers
from tmuxorch.tui import panels
from tmuxorch.tui.ansi import screen_lines
from tmuxorch.tui.change_counter import changes_of
from tmuxorch.tui.highlight import Highlighter
from tmuxorch.tui.lines import Plain, TextLine
from tmuxorch.tui.snapshot import AgentRow, Focus, Panel, Tab

SCREEN_S = 0.1
ANSWER_S = 2.0
PANE_S = 1.0  # how long a pane's id is taken for granted
EVERY_S = {"screen": SCREEN_S, "diff": 2.0, "timeline": 1.0, "health": 2.0}
BUSY_SHARE = 20  # a look that took long is repeated after so many times as long


class PanelReader(threading.Thread):
    """Calls `deliver` with a Panel when what the tab shows has changed."""

    def __init__(
        self,
        open_context: Callable[[], Context],
        deliver: Callable[[Panel], None],
        colours: Highlighter,
    ) -> None:
        super().__init__(name="panel reader", daemon=True)
        self._open_context = open_context
        self._deliver = deliver
        self._colours = colours
        self._changed = threading.Event()
        self._ended = False
        self._focus = Focus(None, Tab.SCREEN)
        self._servers = Servers(timeout_s=ANSWER_S)
        self._pane: tuple[AgentId, PaneId | None, float] | None = None

    def focus(self, focus: Focus) -> None:
        """Panel at this from now on."""
        if focus != self._focus:
            self._focus = focus
            self._changed.set()

    def close(self) -> None:
        self._ended = True
        self._changed.set()
        if self.is_alive():
            self.join(5.0)

    def run(self) -> None:
        ctx: Context | None = None
        last: Panel | None = None
        while not self._ended:
            self._changed.clear()
            focus = self._focus
            started = time.monotonic()
            if focus.row is not None:
                try:
                    ctx = ctx or self._open()
                    panel = self._look(ctx, focus.row, focus.tab)
                except TmuxorchError as e:
                    panel = Panel(focus.row.id, focus.tab, [Plain(e.message, "warn")])
                except Exception as e:  # noqa: BLE001 -- the border: the screen stays up
                    panel = Panel(focus.row.id, focus.tab, [Plain(f"a bug: {e!r}", "bad")])
                if panel != last and focus == self._focus:
                    last = panel
                    self._deliver(panel)
            if focus.row is None or focus.tab is not Tab.SCREEN:
                # A channel that nobody reads fills up, and then its server cannot end.
                self._servers.close()
            took = time.monotonic() - started
            every = EVERY_S[focus.tab] if focus.row is not None else 60.0
            self._changed.wait(max(every, took * BUSY_SHARE))
        self._servers.close()
        if ctx is not None:
            ctx.store.close()

    def _open(self) -> Context:
        ctx = self._open_context()
        self._servers.timeout_s = min(ctx.tmux_timeout_s, ANSWER_S)
        return ctx

    def _look(self, ctx: Context, row: AgentRow, tab: Tab) -> Panel:
        match tab:
            case Tab.SCREEN:
                return Panel(row.id, tab, self._screen(ctx, row))
            case Tab.DIFF:
                return Panel(row.id, tab, panels.diff_of(row.agent, self._colours), changes_of(row))
            case Tab.TIMELINE:
                return Panel(row.id, tab, panels.timeline_of(ctx, row.agent))
            case Tab.HEALTH:
                return Panel(row.id, tab, panels.health_of(ctx, row))

    def _screen(self, ctx: Context, row: AgentRow) -> Sequence[TextLine]:
        """The pane as it is now; over one channel, so that it costs tmux next to nothing."""
        if row.state in (State.LOST, State.QUARANTINED):
            return panels.saved_screen_of(ctx, row)
        pane = self._find_pane(row)
        if pane is not None:
            with suppress(TmuxFailed):  # it was closed between the two questions
                shown = self._servers.capture(row.agent.run.socket, pane, colours=True)
                lines = screen_lines(shown)
                return squeeze(lines) if row.ended else lines
        self._pane = None
        return panels.saved_screen_of(ctx, row)

    def _find_pane(self, row: AgentRow) -> PaneId | None:
        """By its marker, so that a pane id of an earlier server is never taken for it."""
        now = time.monotonic()
        if self._pane and self._pane[0] == row.id and now - self._pane[2] < PANE_S:
            return self._pane[1]
        pane = None
        with suppress(TmuxFailed):  # no answer at all is another thing, and shown
            found = self._servers.find_pane(row.agent.run.socket, row.id)
            pane = found.place.pane if found else None
        self._pane = (row.id, pane, now)
        return pane


def squeeze(lines: Sequence[TextLine]) -> list[TextLine]:
    """Without the empty lines between the last words and the shim's note at the bottom."""
    kept: list[TextLine] = []
    for line in lines:
        if line.width_hint or (kept and kept[-1].width_hint):
            kept.append(line)
    return kept
