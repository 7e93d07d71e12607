"""What a living agent is doing: its own word, else its screen, else whether it prints."""

from __future__ import annotations

from tmuxorch.core.screen import read_status, settle_status
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import AgentId, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tmuxorch.adapters.tmux import Pane
    from tmuxorch.config import Config
    from tmuxorch.model import Agent
    from tmuxorch.service.panes import Servers

WORKING_S = 10.0  # output this recent counts as work
# tmux tells the time of the last output in whole seconds: a screen that was read within this
# time of it may have changed since.
SAME_SECOND_S = 2.0


class Doing:
    """Reads screens, each only if something may have been printed since it was read."""

    def __init__(self, config_of: Callable[[str], Config], clock: Callable[[], float]) -> None:
        self._config_of = config_of
        self._clock = clock
        self._read: dict[AgentId, tuple[float, Status | None]] = {}

    def observe(self, agent: Agent, pane: Pane, servers: Servers) -> Status:
        """What it does; one whose screen cannot be read does what it did."""
        try:
            screen = self._screen(agent, pane, servers)
        except TmuxorchError:
            return agent.status
        said = settle_status(agent.reported, agent.reported_at, screen, pane.activity_at)
        if said is not None:
            return said
        return Status.WORKING if self._clock() - pane.activity_at <= WORKING_S else Status.IDLE

    def forget_all_but(self, known: set[AgentId]) -> None:
        for gone in self._read.keys() - known:
            del self._read[gone]

    def _screen(self, agent: Agent, pane: Pane, servers: Servers) -> Status | None:
        profile = self._config_of(agent.repo).agents.get(agent.agent)
        if profile is None or not (profile.busy or profile.waiting or profile.ready):
            return None
        read_at, status = self._read.get(agent.id, (0.0, None))
        if read_at > pane.activity_at + SAME_SECOND_S:
            return status
        now = self._clock()
        lines = servers.capture(pane.place.socket, pane.place.pane).splitlines()
        status = read_status(profile, lines)
        self._read[agent.id] = now, status
        return status
