"""The thread that counts lines: slowly, one agent at a time, those that changed first."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from tmuxorch.errors import TmuxorchError
from tmuxorch.model import AgentId, Status
from tmuxorch.service.workers import inspection
from tmuxorch.tui.snapshot import AgentRow, Changes

AGAIN_S = 10.0  # at least so long between two counts of one agent
PAUSE_SHARE = 50  # rests so many times as long as a count took


_Sign = tuple[Status, float | None, float]


class ChangeCounter(threading.Thread):
    """Calls `deliver` with an agent's changes when they differ from the last count."""

    def __init__(self, deliver: Callable[[AgentId, Changes], None]) -> None:
        super().__init__(name="change counter", daemon=True)
        self._deliver = deliver
        self._rows: tuple[AgentRow, ...] = ()
        self._ended = threading.Event()
        self._news = threading.Event()
        self._counted: dict[AgentId, tuple[float, _Sign | None, Changes | None]] = {}

    def rows(self, rows: tuple[AgentRow, ...]) -> None:
        self._rows = rows
        self._news.set()

    def close(self) -> None:
        self._ended.set()
        self._news.set()
        if self.is_alive():
            self.join(5.0)

    def run(self) -> None:
        while not self._ended.is_set():
            row = self._next()
            if row is None:
                self._news.wait(AGAIN_S)
                self._news.clear()
                self._ended.wait(0.5)
                continue
            started = time.monotonic()
            found = changes_of(row)
            before = self._counted.get(row.id, (0.0, None, None))[2]
            self._counted[row.id] = (time.monotonic(), _sign_of_life(row), found)
            if found is not None and found != before:
                self._deliver(row.id, found)
            self._ended.wait((time.monotonic() - started) * PAUSE_SHARE)

    def _next(self) -> AgentRow | None:
        """Who has never been counted, or did something since; the one counted longest ago."""
        rows = self._rows
        self._counted = {row.id: self._counted[row.id] for row in rows if row.id in self._counted}
        now = time.monotonic()
        due = []
        for row in rows:
            at, sign, _ = self._counted.get(row.id, (0.0, None, None))
            if sign is None or sign[0] != row.status:
                due.append((0.0, row))
            elif now - at >= AGAIN_S and sign != _sign_of_life(row):
                due.append((at, row))
        return min(due, key=lambda pair: pair[0])[1] if due else None


def _sign_of_life(row: AgentRow) -> _Sign:
    """Changes when the agent may have written: its screen, its index or its top directory moved."""
    agent = row.agent
    return (row.status, agent.run.last_activity_at, _changed_at(agent.task.worktree))


def _changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def changes_of(row: AgentRow) -> Changes | None:
    """Lines added and deleted since its base; None if git cannot tell."""
    try:
        stats = inspection.count_work(row.agent)
    except TmuxorchError:
        return None
    return Changes(stats.insertions, stats.deletions)
