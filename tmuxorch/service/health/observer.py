"""One pass of looking: windows, processes and the shims' words, as facts for every agent.

What needs a second look, or the time since the first, is remembered here between passes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.tmux.holding import is_held
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
from tmuxorch.service.health import liveness
from tmuxorch.service.health.panes import Answer, Servers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tmuxorch.adapters.tmux.server import Pane
    from tmuxorch.core.observation import Ended, ProcessFact, Started, WindowFact
    from tmuxorch.core.stake import StakeFact
    from tmuxorch.model import ProcessId
    from tmuxorch.service.health.activity import Doing

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
        """Look at these agents; `everything` if they are all there are.

        Processes first, then tmux: an answer that has a window, or that a server gave at all,
        was given after the deaths that it is judged with. Each agent's look fails alone.
        """
        watched = [a for a in agents if a.state in _WATCHED and not a.damage]
        processes = {a.task.id: self._process(a) for a in watched}
        answers: dict[str, Answer | Unknown] = {}
        for socket in {a.run.socket for a in watched}:
            there = [a.task.id for a in watched if a.run.socket == socket]
            answers[socket] = self._ask(socket, there, everything=everything)
        if everything:
            known = {a.task.id for a in agents}
            self.doing.forget_all_but(known)
            for memory in (self._missed, self._dead_since, self._waiting_since):
                for stale in memory.keys() - known:
                    del memory[stale]
        seen = {
            a.task.id: self._try(a, processes[a.task.id], answers[a.run.socket]) for a in watched
        }
        for agent in agents:
            if agent.task.id not in seen:
                seen[agent.task.id] = Observation(
                    Unknown("not looked at"), owner=_fact(agent.owner)
                )
        return seen

    def _ask(self, socket: str, there: list[AgentId], *, everything: bool) -> Answer | Unknown:
        answer = self.servers.ask(socket, () if everything else there)
        if isinstance(answer, Answer) and not answer.panes.keys() >= set(there):
            # One that is being killed has lost all its windows before it stops to answer.
            return self.servers.confirm(socket, answer)
        return answer

    def _try(
        self, agent: Agent, process: ProcessFact | None, answer: Answer | Unknown
    ) -> Observation:
        try:
            return self._one(agent, process, answer)
        except Exception as e:  # noqa: BLE001 -- the watcher's border: an odd agent is unknown, alone
            return Observation(Unknown(f"looking at it failed: {e!r}"), process=process)

    def _one(
        self, agent: Agent, process: ProcessFact | None, answer: Answer | Unknown
    ) -> Observation:
        pane = _pane(agent, answer)
        started: Started | None = None
        ended: Ended | Unknown | None = None
        if agent.state is State.RUNNING and not isinstance(process, Alive):
            ended = liveness.read_exit(self.state_dir, agent)
            started = self._started(agent, process, pane)
        is_waiting = agent.state is State.RUNNING and process is None
        window = self._window(agent, answer, pane)
        is_its_own = isinstance(window, WindowSeen) and window.held
        judged = None
        if pane is not None and is_its_own and isinstance(process, Alive):
            judged = self.doing.observe(agent, pane, self.servers)
        return Observation(
            window=window,
            process=process,
            # Of use only once the agent is dead; its own end is an event, not a fact to act on.
            shim=None if isinstance(process, Alive) else _fact(agent.run.shim),
            owner=_fact(agent.owner),
            started=started,
            ended=ended,
            stake=self.stakes.get(agent.task.id),
            doing=judged.status if judged else agent.status,
            question=judged.question if judged else agent.run.question,
            dead_for_s=_span_s(self._dead_since, agent.task.id, isinstance(process, Dead)),
            waiting_s=_span_s(self._waiting_since, agent.task.id, is_waiting),
            held_for_s=procfs.age_s(pane.pid) if is_waiting and pane is not None else None,
        )

    def _started(
        self, agent: Agent, process: ProcessFact | None, pane: Pane | None
    ) -> Started | None:
        """A start that the record does not know: not written down, or by `respawn-pane`.

        A pane that is respawned without a command runs its shim, and so the agent, anew.
        """
        said = liveness.read_started(self.state_dir, agent)
        if said is None or isinstance(said, Unknown):
            return None
        if process is None:
            return said
        if pane is None or agent.run.shim is None or pane.pid == agent.run.shim.pid:
            return None
        respawned = pane.pid == said.shim.pid and isinstance(_fact(said.shim), Alive)
        return said if respawned and isinstance(_fact(said.process), Alive) else None

    def _process(self, agent: Agent) -> ProcessFact | None:
        """What is seen of it, or was once, where it could be seen."""
        fact = _fact(agent.run.process)
        if agent.state is State.EXITED and isinstance(fact, Unknown):
            directory = rundir.run_dir(self.state_dir, agent.task.id)
            if rundir.is_over(directory, run=agent.run.number):
                return Dead("it was seen dead where it ran")
        return fact

    def _window(self, agent: Agent, answer: Answer | Unknown, pane: Pane | None) -> WindowFact:
        recorded = agent.run.place.server if agent.run.place else None
        if recorded is not None and not _is_answering(recorded, answer):
            match procfs.observe_process(recorded):
                case Dead(how):
                    return ServerGone(how)
                case _ if isinstance(answer, Answer):
                    return Unknown("another tmux server answers on the socket of its server")
        if isinstance(answer, Unknown):
            return answer
        if pane is not None:
            self._missed.pop(agent.task.id, None)
            directory = rundir.run_dir(self.state_dir, agent.task.id)
            held = is_held(pane, agent.run.shim, directory)
            return WindowSeen(
                pane.place,
                held,
                pane.panes_in_window - 1,
                pane.activity_at,
                respawned=not held and is_held(pane, None, directory),
            )
        self._missed[agent.task.id] = self._missed.get(agent.task.id, 0) + 1
        return WindowMissed() if self._missed[agent.task.id] < 2 else WindowGone()


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
    found = [] if isinstance(answer, Unknown) else answer.panes.get(agent.task.id, [])
    if len(found) > 1:
        found = [pane for pane in found if pane.place == agent.run.place] or found
    return found[0] if found else None
