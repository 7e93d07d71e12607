"""One pass of looking: windows, processes and the shims' words, as facts for every agent.

What needs a second look, or the time since the first, is remembered here between passes.
"""

from __future__ import annotations

import time

from tmuxorch.adapters import procfs, rundir
from tmuxorch.core.observation import (
    Alive,
    Dead,
    Observation,
    ServerGone,
    Unknown,
    WindowGone,
    WindowMissed,
    WindowSeen,
)
from tmuxorch.model import Agent, AgentId, State
from tmuxorch.service.panes import Answer, Servers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tmuxorch.adapters.tmux import Pane
    from tmuxorch.core.observation import ProcessFact, StakeFact, WindowFact
    from tmuxorch.model import ProcessId
    from tmuxorch.service.doing import Doing

_HALF_DONE = (State.CREATING, State.REMOVING)
_WATCHED = (State.RUNNING, State.EXITED)


class Observer:
    """The eyes of the health loop."""

    def __init__(
        self,
        state_dir: str,
        servers: Servers,
        *,
        stakes: Mapping[AgentId, StakeFact],
        doing: Doing,
    ) -> None:
        self.state_dir = state_dir
        self.servers = servers
        self.stakes = stakes
        self.doing = doing
        self._missed: dict[AgentId, int] = {}
        self._dead_since: dict[AgentId, float] = {}
        self._waiting_since: dict[AgentId, float] = {}

    def observe(self, agents: Sequence[Agent], *, everything: bool) -> dict[AgentId, Observation]:
        """Look at these agents; `everything` if they are all there are."""
        watched = [a for a in agents if a.state in _WATCHED]
        answers: dict[str, Answer | Unknown] = {}
        for socket in {a.socket for a in watched}:
            only = () if everything else [a.id for a in watched if a.socket == socket]
            answers[socket] = self.servers.ask(socket, only)
        if everything:
            known = {a.id for a in agents}
            self.doing.forget_all_but(known)
            for memory in (self._missed, self._dead_since, self._waiting_since):
                for stale in memory.keys() - known:
                    del memory[stale]
        return {
            agent.id: self._one(agent, answers[agent.socket])
            if agent.state in _WATCHED
            else Observation(Unknown("not looked at"), owner=_fact(agent.owner))
            for agent in agents
        }

    def _one(self, agent: Agent, answer: Answer | Unknown) -> Observation:
        process = self._process(agent)
        pane = _pane(agent, answer)
        started = ended = None
        if agent.state is State.RUNNING and not isinstance(process, Alive):
            directory = rundir.run_dir(self.state_dir, agent.id)
            # Words of an earlier run are not about this one.
            ended = rundir.read_exit(directory, run=agent.restarts)
            if process is None:
                started = rundir.read_started(directory, run=agent.restarts)
        is_waiting = agent.state is State.RUNNING and process is None
        return Observation(
            window=self._window(agent, answer, pane),
            process=process,
            # Of use only once the agent is dead; its own end is an event, not a fact to act on.
            shim=None if isinstance(process, Alive) else _fact(agent.shim),
            started=started,
            ended=ended,
            stake=self.stakes.get(agent.id),
            doing=self.doing.observe(agent, pane, self.servers)
            if pane is not None and isinstance(process, Alive)
            else agent.status,
            dead_for_s=_span_s(self._dead_since, agent.id, isinstance(process, Dead)),
            waiting_s=_span_s(self._waiting_since, agent.id, is_waiting),
            held_for_s=procfs.age_s(pane.pid) if is_waiting and pane is not None else None,
        )

    def _process(self, agent: Agent) -> ProcessFact | None:
        """What is seen of it, or was once, where it could be seen."""
        fact = _fact(agent.process)
        if agent.state is State.EXITED and isinstance(fact, Unknown):
            directory = rundir.run_dir(self.state_dir, agent.id)
            if rundir.is_over(directory, run=agent.restarts):
                return Dead("it was seen dead where it ran")
        return fact

    def _window(self, agent: Agent, answer: Answer | Unknown, pane: Pane | None) -> WindowFact:
        recorded = agent.place.server if agent.place else None
        if recorded is not None and not _is_answering(recorded, answer):
            match procfs.observe_process(recorded):
                case Dead(how):
                    return ServerGone(how)
                case _ if isinstance(answer, Answer):
                    return Unknown("another tmux server answers on the socket of its server")
        if isinstance(answer, Unknown):
            return answer
        if pane is not None:
            self._missed.pop(agent.id, None)
            held = agent.shim is None or pane.pid == agent.shim.pid
            return WindowSeen(pane.place, held, pane.panes_in_window - 1, pane.activity_at)
        self._missed[agent.id] = self._missed.get(agent.id, 0) + 1
        return WindowMissed() if self._missed[agent.id] < 2 else WindowGone()


def _span_s(since: dict[AgentId, float], agent_id: AgentId, is_so: bool) -> float:
    """For how long it has been so, over all looks."""
    if not is_so:
        since.pop(agent_id, None)
        return 0.0
    now = time.monotonic()
    return now - since.setdefault(agent_id, now)


def _is_answering(server: ProcessId, answer: Answer | Unknown) -> bool:
    return isinstance(answer, Answer) and procfs.same_process(server, answer.server)


def _fact(process: ProcessId | None) -> ProcessFact | None:
    return None if process is None else procfs.observe_process(process)


def _pane(agent: Agent, answer: Answer | Unknown) -> Pane | None:
    """The agent's pane; where its window is linked into several sessions, the recorded one."""
    found = [] if isinstance(answer, Unknown) else answer.panes.get(agent.id, [])
    if len(found) > 1:
        found = [pane for pane in found if pane.place == agent.place] or found
    return found[0] if found else None
