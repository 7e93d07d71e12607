"""The health loop: observe, reconcile, apply, once or forever.

Truth comes from looking, at least once a second; events only make the next look come sooner.
Slow deeds are done beside the loop, one at a time for each agent, so that no removal and no
stopped tmux server keeps another agent's death from being seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tmuxorch.adapters.store.watchfile import poke
from tmuxorch.adapters.system import procfs
from tmuxorch.core.observation import Alive, Dead, WindowSeen
from tmuxorch.core.reconcile import Action, Policy, Verdict, decide
from tmuxorch.core.stake import Stake, StakeFact
from tmuxorch.errors import StateConflict, TmuxorchError
from tmuxorch.model import Agent, AgentId, DeadPolicy, EventKind, Kind, ProcessId, State
from tmuxorch.service.health import verdicts
from tmuxorch.service.health.activity import Doing
from tmuxorch.service.health.observer import Observer
from tmuxorch.service.health.panes import Servers
from tmuxorch.service.health.pool import Hands
from tmuxorch.service.removal.work import observe_stake
from tmuxorch.service.sweep import sweep

if TYPE_CHECKING:
    from tmuxorch.config import Config
    from tmuxorch.core.observation import Observation
    from tmuxorch.service.context import Context

PASS_S = 1.0
LOOK_AGAIN_S = 0.004
STAKE_AGAIN_S = 60.0  # a kept worker's work may have been merged meanwhile
# Wall and monotonic clock this far apart, or so long without a pass: the machine slept or was
# set right, and what is seen in the first moments after that is not to be trusted.
GAP_S = 5.0
GRACE_S = 3.0

_QUICK = frozenset({Action.ADOPT, Action.END, Action.LOSE})
_SLOW = frozenset({Action.CLOSE, Action.RESTART, Action.REMOVE})
_DONE = {
    Action.ADOPT: EventKind.ADOPTED,
    Action.END: EventKind.ENDED,
    Action.LOSE: EventKind.LOST,
    Action.CLOSE: EventKind.WINDOW_CLOSED,
    Action.RESTART: "started again",
    Action.REMOVE: EventKind.REMOVED,
}


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that was done, for whoever reads along; `id` is empty if about no agent."""

    id: str
    name: str
    what: str
    why: str


class Health:
    """One watcher's eyes, memory and hands. Not for use by several threads."""

    def __init__(
        self,
        ctx: Context,
        *,
        open_context: Callable[[], Context],
        tell: Callable[[Deed], None],
        on_bug: Callable[[BaseException], None],
    ) -> None:
        self.ctx = ctx
        self.tell = tell
        self.on_bug = on_bug
        self.servers = Servers()
        self.alive: dict[ProcessId, AgentId | None] = {}
        self.soon_s = PASS_S
        self.again: set[AgentId] = set()
        self.unsure: set[AgentId] = set()
        self._me = procfs.identify_self()
        self._version: tuple[int, int] | None = None
        self._known: list[Agent] = []
        self._open_context = open_context
        self._settings = ctx.settings.for_watching
        self._stakes: dict[AgentId, StakeFact] = {}
        self._stakes_at: dict[AgentId, tuple[float | None, float]] = {}
        self._observer = Observer(
            ctx.state_dir,
            self.servers,
            stakes=self._stakes,
            doing=Doing(self._settings, ctx.clock),
        )
        self._hands = Hands(lambda: poke(ctx.state_dir))
        self._clocks = (ctx.clock(), time.monotonic())
        self._trusted_from = 0.0
        self._tries: dict[AgentId, int] = {}
        self._unswept: set[str] = set()

    def look(self, only: Collection[AgentId] | None = None) -> int:
        """One pass over all agents or `only` these; 0 if there was nothing to do or wait for.

        Sets `soon_s`, after which those in `again` are to be looked at, and `alive`, whose ends
        are a reason to look at once; `unsure` are those that one look was not enough for.
        """
        self._collect()
        if self._is_unsettled():
            self.soon_s = GRACE_S / 4
            return 0
        agents = self._agents()
        if only is not None:
            agents = [agent for agent in agents if agent.task.id in only]
        seen = self._observer.observe(agents, everything=only is None)
        for agent in agents:
            if agent.owner == self._me and not self._hands.are_busy(agent.task.id):
                failed = Dead("the watcher's own attempt was given up")
                seen[agent.task.id] = replace(seen[agent.task.id], owner=failed)
        now = self.ctx.clock()
        judged = [(a, seen[a.task.id], self._decide(a, seen[a.task.id], now)) for a in agents]
        self._note_alive(agents, seen, whole=only is None)
        if only is None:
            self._forget_all_but({agent.task.id for agent in agents})
        self._show(judged)
        done = self._want_stakes(agents)
        self.unsure = {a.task.id for a, _, v in judged if v.action is Action.LOOK_AGAIN}
        again = set(self.unsure)
        for agent, observation, verdict in judged:
            if verdict.action in _QUICK and self._do_quickly(agent, observation, verdict):
                done += 1
                again.add(agent.task.id)  # its new state has a verdict of its own
            elif verdict.action in _SLOW:
                done += self._do_beside(agent, verdict)
        restarts = {
            a.task.id: a.restart_at - now for a in agents if a.restart_at and a.restart_at > now
        }
        self._plan_next({a.task.id for a in agents}, again, restarts)
        return done

    def _plan_next(
        self, looked: set[AgentId], again: set[AgentId], restarts_s: dict[AgentId, float]
    ) -> None:
        """When to look again, and at whom: soon where two looks are needed, but ever less so."""
        for agent_id in looked - self.unsure:
            self._tries.pop(agent_id, None)
        waits_s = dict(restarts_s)
        for agent_id in again:
            tries = self._tries[agent_id] = self._tries.get(agent_id, 0) + 1
            waits_s[agent_id] = min(LOOK_AGAIN_S * 2.0 ** min(tries - 1, 10), PASS_S)
        self.soon_s = min([PASS_S, *waits_s.values()])
        self.again = again | {a for a, wait_s in restarts_s.items() if wait_s <= self.soon_s}

    def is_busy(self) -> bool:
        """Whether something slow is still being done."""
        self._collect()
        return self._hands.are_busy()

    def _collect(self) -> None:
        for bug in self._hands.collect():
            self.on_bug(bug)

    def close(self) -> None:
        """Let go; what is under way is carried on by the next watcher."""
        self._hands.close()
        self.servers.close()

    # -- what is remembered ------------------------------------------------------

    def _agents(self) -> list[Agent]:
        """The recorded agents, read again only if somebody has written."""
        version = self.ctx.store.version()
        if version != self._version:
            self._known = self.ctx.store.agents()
            self._version = version
        return self._known

    def _is_unsettled(self) -> bool:
        """Whether the machine has just slept, or its clock was set."""
        wall, monotonic = self.ctx.clock(), time.monotonic()
        before_wall, before = self._clocks
        self._clocks = wall, monotonic
        passed_s = monotonic - before
        if passed_s > GAP_S + PASS_S or abs(wall - before_wall - passed_s) > GAP_S:
            self._trusted_from = monotonic + GRACE_S
        return monotonic < self._trusted_from

    def _note_alive(
        self, agents: Sequence[Agent], seen: dict[AgentId, Observation], *, whole: bool
    ) -> None:
        looked = {agent.task.id for agent in agents}
        keep: dict[ProcessId, AgentId | None] = {}
        if not whole:
            keep = {p: a for p, a in self.alive.items() if a is None or a not in looked}
        for agent in agents:
            if agent.state is not State.RUNNING:
                continue
            if agent.run.process is not None and isinstance(seen[agent.task.id].process, Alive):
                keep[agent.run.process] = agent.task.id
                if (
                    isinstance(seen[agent.task.id].window, WindowSeen)
                    and agent.run.shim is not None
                ):
                    keep[agent.run.shim] = agent.task.id
        servers = {agent.run.place.server for agent in agents if agent.run.place is not None}
        keep |= {s: None for s in servers if isinstance(procfs.observe_process(s), Alive)}
        self.alive = keep

    def _forget_all_but(self, known: set[AgentId]) -> None:
        for memory in (self._stakes, self._stakes_at, self._tries):
            for gone in memory.keys() - known:
                del memory[gone]
        self._hands.forget_all_but({*known})

    def _decide(self, agent: Agent, seen: Observation, now: float) -> Verdict:
        try:
            cleanup = self._settings(agent.task.repo).cleanup
            return decide(agent, seen, Policy(cleanup.dead, cleanup.never_started_s), now)
        except Exception as e:  # noqa: BLE001 -- the watcher's border: an odd agent is left, alone
            return Verdict(Action.LEAVE, f"judging it failed: {e!r}")

    def _want_stakes(self, agents: Sequence[Agent]) -> int:
        """Have it found out what is at stake for ended workers, and again from time to time.

        What was found for an earlier end of the agent does not count for this one.
        """
        now, begun = time.monotonic(), 0
        for agent in agents:
            ended_at, looked_at = self._stakes_at.get(agent.task.id, (None, -STAKE_AGAIN_S))
            awaits = self._awaits_judgement(agent)
            if not awaits or ended_at != agent.run.ended_at:
                self._stakes.pop(agent.task.id, None)
                looked_at = -STAKE_AGAIN_S
            due = awaits and now - looked_at >= STAKE_AGAIN_S
            if due and self._hands.begin(agent.task.id, partial(self._find_stake, agent)):
                self._stakes_at[agent.task.id] = agent.run.ended_at, now
                begun += 1
        return begun

    def _awaits_judgement(self, agent: Agent) -> bool:
        is_over = (
            agent.state is State.EXITED and not agent.run.stopped and agent.task.kind is Kind.WORKER
        )
        return is_over and self._settings(agent.task.repo).cleanup.dead is not DeadPolicy.NEVER

    def _find_stake(self, agent: Agent) -> None:
        found = self._stakes[agent.task.id] = observe_stake(agent)
        if isinstance(found, Stake) and found.odd:
            self._record_odd(agent, "; ".join(found.odd))

    def _record_odd(self, agent: Agent, why: str) -> None:
        """Say once, for `why NAME`, what keeps every automatic step off the agent."""
        ctx = self._open_context()
        try:
            told = {(event.kind, event.why) for event in ctx.store.events(agent_id=agent.task.id)}
            if (EventKind.KEPT_FOR_REVIEW, why) not in told:
                ctx.store.record(agent, EventKind.KEPT_FOR_REVIEW, why)
                self._tell(agent, EventKind.KEPT_FOR_REVIEW, why)
        finally:
            ctx.store.close()

    # -- what is done ------------------------------------------------------------

    def _show(self, judged: Sequence[tuple[Agent, Observation, Verdict]]) -> None:
        shown = [verdicts.sighting(a, s, v) for a, s, v in judged if v.action is Action.SHOW]
        if shown:
            self.ctx.store.show(shown)
        for sighting in shown:
            if sighting.why:
                self._tell(sighting.agent, sighting.what, sighting.why)

    def _do_quickly(self, agent: Agent, seen: Observation, verdict: Verdict) -> bool:
        if self._hands.put_off(agent.task.id):
            return False
        try:
            verdicts.do_quickly(self.ctx, self._settings(agent.task.repo), agent, seen, verdict)
        except StateConflict:
            return False  # a person's command was quicker, and knows better
        except (TmuxorchError, OSError):
            raise  # the store fails, and not only for this one
        except Exception as e:  # noqa: BLE001 -- the watcher's border: the others are still recorded
            self._hands.note_failure(agent.task.id)
            self._tell(agent, EventKind.COULD_NOT.of(verdict.action), str(e))
            self.on_bug(e)
            return False
        self._tell(agent, _DONE[verdict.action], verdict.why)
        return True

    def _do_beside(self, agent: Agent, verdict: Verdict) -> int:
        config = self._settings(agent.task.repo)
        if self._hands.put_off(agent.task.id):
            return 0
        self._hands.begin(agent.task.id, partial(self._do_slowly, config, agent, verdict))
        return 1  # begun, or waiting for what is being done with the agent already

    def _do_slowly(self, config: Config, agent: Agent, verdict: Verdict) -> None:
        ctx = self._open_context()
        try:
            verdicts.do_slowly(ctx, config, agent, verdict)
        except StateConflict:
            return
        except (TmuxorchError, OSError) as e:
            ctx.store.record(agent, EventKind.COULD_NOT.of(verdict.action), str(e))
            self._tell(agent, EventKind.COULD_NOT.of(verdict.action), str(e))
            raise
        finally:
            ctx.store.close()
        self._tell(agent, _DONE[verdict.action], verdict.why)

    def _tell(self, agent: Agent, what: str, why: str) -> None:
        self.tell(Deed(agent.task.id, agent.task.name, what, why))

    def sweep(self) -> None:
        """Clear away what cannot hold work, beside the loop."""
        self._hands.begin("sweep", self._sweep)

    def _sweep(self) -> None:
        ctx = self._open_context()
        try:
            for orphan in sweep.sweep_safe(ctx, self._unswept):
                did = EventKind.SWEPT if orphan.done else EventKind.SWEEP_FAILED
                what, why = did.of(orphan.name), orphan.reason
                ctx.store.note(what, why)
                self.tell(Deed("", "tmuxorch", what, why))
        finally:
            ctx.store.close()
