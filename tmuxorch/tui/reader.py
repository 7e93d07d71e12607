"""The thread that knows which agents there are and whether they live.

It waits on the processes themselves (pidfds) and looks at the store's version in between,
so that a death is seen at once and a quiet store costs next to nothing.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from tmuxorch import paths
from tmuxorch.adapters.store import records as stores
from tmuxorch.core import view
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import Agent, ProcessId, State
from tmuxorch.service.health.liveness import look
from tmuxorch.tui.snapshot import Row, Snapshot, WatcherSeen

VERSION_S = 0.05  # between two looks at the store's version
RELOOK_S = 1.0  # between two looks at every process: what no pidfd tells is at most this old
SHIM_S = 0.02
RESTLESS_S = 0.5  # after a death: looks at every turn
RETRY_S = 1.0  # after the store could not be read


class Reader(threading.Thread):
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
        self._wake_read, self._wake_write = os.pipe()
        self._deaths = Deaths(self._wake_read)
        self._seen = Snapshot()

    def close(self) -> None:
        """End the thread; returns when it has let go of the store."""
        self._ended.set()
        with suppress(OSError):
            os.write(self._wake_write, b"x")
        if self.is_alive():
            self.join(5.0)
        os.close(self._wake_write)

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
        self._deaths.close()

    def _read_on(self) -> None:
        """Follow the store until it fails; a store that is not there yet has no agents."""
        store = self._open()
        if store is None:
            self._show(Snapshot(watcher=self._watcher(), loaded=True))
            self._deaths.wait(RETRY_S)
            return
        try:
            version, looked_at, restless_until = -1, 0.0, 0.0
            agents: list[Agent] = []
            while not self._ended.is_set():
                current, now = store.data_version(), time.monotonic()
                if current != version:
                    version, agents = current, store.agents()
                    self._deaths.watch(agents)
                    restless_until = now
                if now <= restless_until or now - looked_at >= RELOOK_S:
                    looked_at = now
                    rows = tuple(self._row(agent) for agent in agents)
                    self._show(Snapshot(rows, self._watcher(), loaded=True))
                if self._deaths.wait(VERSION_S):
                    # The shim writes how it ended a moment after the end.
                    time.sleep(SHIM_S)
                    restless_until = time.monotonic() + RESTLESS_S
        finally:
            store.close()

    def _open(self) -> stores.Store | None:
        if os.path.isdir(self._state_dir):
            paths.ensure_private(self._state_dir)
        return stores.open_store_for_reading(self._state_dir)

    def _row(self, agent: Agent) -> Row:
        seen = look(self._state_dir, agent)
        state, status = view.state_and_status(agent, seen)
        return Row(agent, state, status, agent.run.exit or view.exit_of(seen.ended))

    def _watcher(self) -> WatcherSeen:
        return self._observe_watcher(self._state_dir)

    def _show(self, snapshot: Snapshot) -> None:
        if snapshot != self._seen and not self._ended.is_set():
            self._seen = snapshot
            self._deliver(snapshot)


class Deaths:
    """Waits for the end of any of the agents' processes."""

    def __init__(self, wake: int) -> None:
        self._poll = select.poll()
        self._wake = wake
        self._poll.register(wake, select.POLLIN)
        self._fds: dict[ProcessId, int] = {}

    def watch(self, agents: list[Agent]) -> None:
        """Wait for these agents' processes and no others."""
        wanted = {a.run.process for a in agents if a.run.process and a.state is State.RUNNING}
        for process in self._fds.keys() - wanted:
            self._drop(process)
        for process in wanted - self._fds.keys():
            # Gone already, other namespace, no pidfds: the regular look tells.
            with suppress(OSError, AttributeError):
                fd = os.pidfd_open(process.pid)
                self._fds[process] = fd
                self._poll.register(fd, select.POLLIN)

    def wait(self, timeout_s: float) -> bool:
        """True as soon as one of them has ended, False when the time is over."""
        ready = {fd for fd, _ in self._poll.poll(timeout_s * 1000)}
        ended = [process for process, fd in self._fds.items() if fd in ready]
        for process in ended:
            # It stays readable for ever; said once is enough.
            self._poll.unregister(self._fds[process])
        return bool(ended)

    def _drop(self, process: ProcessId) -> None:
        fd = self._fds.pop(process)
        with suppress(KeyError):
            self._poll.unregister(fd)
        os.close(fd)

    def close(self) -> None:
        for process in list(self._fds):
            self._drop(process)
        os.close(self._wake)
