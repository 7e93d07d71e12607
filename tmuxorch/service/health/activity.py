"""What a living agent is doing: its own word, else its screen, else whether it prints."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tmuxorch.core.moments import Moments
from tmuxorch.core.screen import read_status, settle_status
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import AgentId, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from tmuxorch.adapters.tmux.server import Pane
    from tmuxorch.config import Config
    from tmuxorch.model import Agent
    from tmuxorch.service.health.panes import Servers

WORKING_S = 10.0  # output this recent counts as work
# tmux tells the time of the last output in whole seconds: a screen that was read within this
# time of it may have changed since.
SAME_SECOND_S = 2.0


class Doing:
    """Reads screens, each only if something may have been printed since it was read."""

    def __init__(self, config_of: Callable[[str], Config], clock: Callable[[], float]) -> None:
        self._config_of = config_of
        self._clock = clock
        self._moments = Moments()
        self._seen: set[AgentId] = set()
        self._read: dict[AgentId, tuple[float, float, Status | None]] = {}

    def observe(self, agent: Agent, pane: Pane, servers: Servers) -> Status:
        """What it does; one whose screen cannot be read does what it did."""
        self._seen.add(agent.task.id)
        self._moments.look(self._clock(), time.monotonic())
        drawn_at = self._moments.place((agent.task.id, "drawn"), pane.activity_at)
        reported_at = None
        if agent.run.reported_at is not None:
            reported_at = self._moments.place((agent.task.id, "reported"), agent.run.reported_at)
        try:
            screen = self._screen(agent, pane, servers, drawn_at)
        except TmuxorchError:
            return agent.status
        said = settle_status(agent.run.reported, reported_at, screen, drawn_at)
        if said is not None:
            return said
        return Status.WORKING if self._moments.now - drawn_at <= WORKING_S else Status.IDLE

    def forget_all_but(self, known: set[AgentId]) -> None:
        for gone in self._seen - known:
            self._read.pop(gone, None)
            for what in ("drawn", "reported"):
                self._moments.forget((gone, what))
        self._seen &= known

    def _screen(self, agent: Agent, pane: Pane, servers: Servers, drawn_at: float) -> Status | None:
        profile = self._config_of(agent.task.repo).agents.get(agent.task.agent)
        if profile is None or not (profile.busy or profile.waiting or profile.ready):
            return None
        stamp, read_at, status = self._read.get(agent.task.id, (None, 0.0, None))
        if stamp == pane.activity_at and read_at > drawn_at + SAME_SECOND_S:
            return status
        now = self._moments.now
        lines = servers.capture(pane.place.socket, pane.place.pane).splitlines()
        status = read_status(profile, lines)
        self._read[agent.task.id] = pane.activity_at, now, status
        return status
