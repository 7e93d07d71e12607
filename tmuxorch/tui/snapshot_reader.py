"""The thread that knows which agents there are and whether they live.

It waits on the processes themselves (pidfds) and looks at the store's version in between,
so that a death is seen at once and a quiet store costs next to nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from tmuxorch import paths
from tmuxorch.core import view
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import Agent
from tmuxorch.service.health.deaths import DeathWatch
from tmuxorch.service.listing import Listing
from tmuxorch.tui.snapshot import AgentRow, Snapshot, WatcherSeen

VERSION_S = 0.05  # between two looks at the store's version
RELOOK_S = 1.0  # between two looks at every process: what no pidfd tells is at most this old
SHIM_S = 0.02
RESTLESS_S = 0.5  # after a death: looks at every turn
RETRY_S = 1.0  # after the store could not be read


class SnapshotReader(threading.Thread):
    """Calls `deliver` with a Snapshot whenever it differs from the one before."""

    def __init__(
        self,
        state_dir: str,
        deliver: Callable[[Snapshot], None],
        observe_watcher: Callable[[str], WatcherSeen],
    ) -> None:
        super().__init__(name="reader", daemon=True)
        self._state_dir = state_dir
        self._deliver = deliver
        self._observe_watcher = observe_watcher
        self._ended = threading.Event()
        self._deaths = DeathWatch()
        self._seen = Snapshot()

    def close(self) -> None:
        """End the thread; returns when it has let go of the store."""
        self._ended.set()
        self._deaths.call()
        if self.is_alive():
            self.join(5.0)
        if not self.is_alive():
            self._deaths.close()

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                self._read_on()
            except TmuxorchError as e:
                self._show(Snapshot(self._seen.rows, self._seen.watcher, e.message, loaded=True))
                self._deaths.wait(RETRY_S)
            except Exception as e:  # noqa: BLE001 -- the border: the screen stays up and says it
                words = f"reading the agents failed: {e!r}"
                self._show(Snapshot(self._seen.rows, self._seen.watcher, words, loaded=True))
                self._deaths.wait(RETRY_S)

    def _read_on(self) -> None:
        """Follow the store until it fails; a store that is not there yet has no agents."""
        listing = self._open()
        if not listing.exists:
            self._show(Snapshot(watcher=self._watcher(), loaded=True))
            self._deaths.wait(RETRY_S)
            return
        try:
            version, looked_at, restless_until = -1, 0.0, 0.0
            agents: list[Agent] = []
            while not self._ended.is_set():
                current, now = listing.version(), time.monotonic()
                if current != version:
                    version, agents = current, listing.agents()
                    self._deaths.follow(agents)
                    restless_until = now
                if now <= restless_until or now - looked_at >= RELOOK_S:
                    looked_at = now
                    rows = tuple(_row(listing, agent) for agent in agents)
                    self._show(Snapshot(rows, self._watcher(), loaded=True))
                if self._deaths.wait(VERSION_S):
                    # The shim writes how it ended a moment after the end.
                    time.sleep(SHIM_S)
                    restless_until = time.monotonic() + RESTLESS_S
        finally:
            listing.close()

    def _open(self) -> Listing:
        if os.path.isdir(self._state_dir):
            paths.ensure_private(self._state_dir)
        return Listing.open(self._state_dir)

    def _watcher(self) -> WatcherSeen:
        return self._observe_watcher(self._state_dir)

    def _show(self, snapshot: Snapshot) -> None:
        if snapshot != self._seen and not self._ended.is_set():
            self._seen = snapshot
            self._deliver(snapshot)


def _row(listing: Listing, agent: Agent) -> AgentRow:
    seen = listing.look(agent)
    state, status = view.state_and_status(agent, seen)
    return AgentRow(agent, state, status, agent.run.exit or view.exit_of(seen.ended))
