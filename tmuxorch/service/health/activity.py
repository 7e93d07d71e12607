"""What a living agent is doing: the facts gathered, and judged where they were not before."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tmuxorch.core.evidence import Judgement, Sight, judge
from tmuxorch.core.moments import Moments
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import AgentId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tmuxorch.adapters.tmux.server import Pane
    from tmuxorch.config import Config
    from tmuxorch.config.profiles import Profile
    from tmuxorch.model import Agent
    from tmuxorch.service.health.panes import Servers

# tmux tells the time of the last output in whole seconds: a screen that was read within this
# time of it may have changed since.
SAME_SECOND_S = 2.0


def profile_of(agent: Agent, config: Config) -> Profile | None:
    """How the agent's program is read; a command of a person's own has no profile."""
    return None if agent.task.command else config.agents.get(agent.task.agent)


class Doing:
    """Reads screens, each only if something may have been printed since it was read."""

    def __init__(self, config_of: Callable[[str], Config], clock: Callable[[], float]) -> None:
        self._config_of = config_of
        self._clock = clock
        self._moments = Moments()
        self._seen: set[AgentId] = set()
        self._read: dict[AgentId, tuple[float, float, Sequence[str]]] = {}

    def observe(self, agent: Agent, pane: Pane, servers: Servers) -> Judgement | None:
        """What it does; None if its screen cannot be read."""
        self._seen.add(agent.task.id)
        self._moments.look(self._clock(), time.monotonic())
        drawn_at = self._moments.place((agent.task.id, "drawn"), pane.activity_at)
        reported_at = None
        if agent.run.reported_at is not None:
            reported_at = self._moments.place((agent.task.id, "reported"), agent.run.reported_at)
        profile = profile_of(agent, self._config_of(agent.task.repo))
        lines: Sequence[str] = ()
        if profile is not None and profile.reads_screen:
            try:
                lines = self._lines(agent, pane, servers, drawn_at)
            except TmuxorchError:
                return None
        return judge(
            profile,
            Sight(
                now=self._moments.now,
                drawn_at=drawn_at,
                title=pane.title,
                lines=lines,
                reported=agent.run.reported,
                reported_at=reported_at,
            ),
        )

    def forget_all_but(self, known: set[AgentId]) -> None:
        for gone in self._seen - known:
            self._read.pop(gone, None)
            for what in ("drawn", "reported"):
                self._moments.forget((gone, what))
        self._seen &= known

    def _lines(self, agent: Agent, pane: Pane, servers: Servers, drawn_at: float) -> Sequence[str]:
        stamp, read_at, lines = self._read.get(agent.task.id, (None, 0.0, ()))
        if stamp == pane.activity_at and read_at > drawn_at + SAME_SECOND_S:
            return lines
        now = self._moments.now
        lines = servers.capture(pane.place.socket, pane.place.pane).splitlines()
        self._read[agent.task.id] = pane.activity_at, now, lines
        return lines
