"""Carrying out verdicts: each is a compare-and-swap on the record, so it happens once.

Quick ones only change the record. Slow ones (closing, restarting, removing) look at the agent
anew before they begin, for they may have waited for their turn.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tmuxorch.adapters.store import rundir
from tmuxorch.core.observation import Ended, WindowSeen
from tmuxorch.core.reconcile import Action
from tmuxorch.core.restart import Limits, plan_restart
from tmuxorch.core.view import exit_of
from tmuxorch.errors import StateConflict, TmuxorchError, sure
from tmuxorch.model import EventKind, Kind, Reason, State, Status
from tmuxorch.service.removal import removal
from tmuxorch.service.workers import running

if TYPE_CHECKING:
    from tmuxorch.adapters.store.records import Sighting
    from tmuxorch.config import Config
    from tmuxorch.core.observation import Observation
    from tmuxorch.core.reconcile import Verdict
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context

# Changes of what is shown that a person may ask about later; working and idle come and go.
_NOTABLE = frozenset({Status.WAITING, Status.STRAY, Status.UNKNOWN, Status.ENDED})


def sighting(agent: Agent, seen: Observation, verdict: Verdict) -> Sighting:
    """What a SHOW changes in the record."""
    from tmuxorch.adapters.store.records import Sighting

    asked = seen.question if verdict.status is Status.WAITING else None
    changes: dict[str, Any] = {"status": verdict.status, "question": asked}
    if isinstance(seen.window, WindowSeen):
        changes |= {"place": seen.window.place, "last_activity_at": seen.window.activity_at}
    noted = verdict.status is not agent.status and {verdict.status, agent.status} & _NOTABLE
    return Sighting(
        agent, changes, EventKind.SEEN.of(str(verdict.status)), verdict.why if noted else ""
    )


def do_quickly(
    ctx: Context, config: Config, agent: Agent, seen: Observation, verdict: Verdict
) -> Agent:
    """ADOPT, END or LOSE: the record catches up with what is so."""
    changes: dict[str, Any] = {}
    match verdict.action:
        case Action.ADOPT:
            started = sure(seen.started, "an agent is adopted by its shim's word")
            what = EventKind.ADOPTED
            changes = {
                "process": started.process,
                "shim": started.shim,
                "started_at": started.at,
                "status": Status.WORKING,
            }
            if isinstance(seen.window, WindowSeen):
                changes["place"] = seen.window.place
        case Action.END:
            what = EventKind.ENDED
            changes = _ending(config, agent, seen, verdict, ctx.clock())
        case _:
            what = EventKind.LOST
            changes = {"state": State.LOST, "status": Status.LOST, "ended_at": ctx.clock()}
    changes["owner"] = None
    return ctx.store.swap(agent, expect=[agent.state], what=what, why=verdict.why, **changes)


def _ending(
    config: Config, agent: Agent, seen: Observation, verdict: Verdict, now: float
) -> dict[str, Any]:
    ended_at = seen.ended.at if isinstance(seen.ended, Ended) else now
    changes: dict[str, Any] = {
        "state": State.EXITED,
        "status": verdict.status,
        "reason": verdict.reason,
        "exit": exit_of(seen.ended),
        "ended_at": ended_at,
    }
    if agent.task.kind is Kind.PERSISTENT and not agent.run.stopped:
        lived_s = seen.ended.lived_s if isinstance(seen.ended, Ended) else None
        changes |= _restart_plan(config, agent, ended_at, lived_s)
    return changes


def _restart_plan(
    config: Config, agent: Agent, died_at: float, lived_s: float | None = None
) -> dict[str, Any]:
    limits = config.restart
    if lived_s is None:
        lived_s = died_at - (agent.run.started_at or died_at)
    plan = plan_restart(
        agent.deaths,
        lived_s=lived_s,
        now=died_at,
        limits=Limits(
            limits.limit,
            limits.window_s,
            limits.first_delay_s,
            limits.max_delay_s,
            limits.healthy_s,
        ),
        luck=random.random(),
    )
    given_up = {} if plan.restart_at is not None else {"status": Status.CRASHED}
    return {"deaths": plan.deaths, "restart_at": plan.restart_at, **given_up}


def do_slowly(ctx: Context, config: Config, agent: Agent, verdict: Verdict) -> None:
    """CLOSE, RESTART or REMOVE, unless somebody else was quicker."""
    now = ctx.store.agent(agent.task.id)
    if now is None or (now.state, now.owner, now.run.process) != (
        agent.state,
        agent.owner,
        agent.run.process,
    ):
        return
    match verdict.action:
        case Action.CLOSE:
            _close(ctx, config, now)
        case Action.RESTART:
            _restart(ctx, config, now)
        case Action.REMOVE:
            _remove(ctx, config, now, verdict)


def _close(ctx: Context, config: Config, agent: Agent) -> None:
    removal.save_screen(ctx, agent)
    removal.end(ctx, agent, config.cleanup.grace_s)
    ctx.store.record(agent, EventKind.WINDOW_CLOSED, "its last screen is kept")
    profile = config.agents.get(agent.task.agent)
    screen = rundir.read_screen(ctx.run_dir(agent.task.id)) or ""
    if agent.task.conversation and agent.run.number and running.says_resume_failed(profile, screen):
        running.forget_conversation(ctx, agent)


def _restart(ctx: Context, config: Config, agent: Agent) -> None:
    """Start a persistent agent again; a start that fails is one more death."""
    try:
        running.restart(replace(ctx, socket=agent.run.socket), config, agent, fresh=False)
    except StateConflict:
        raise
    except TmuxorchError as e:
        after = ctx.store.agent(agent.task.id)
        if after is None or after.state is not State.EXITED:
            raise
        ctx.store.swap(
            after,
            expect=[State.EXITED],
            what=EventKind.DIED_AT_ONCE,
            why=e.message,
            **_restart_plan(config, after, ctx.clock()),
        )


def _remove(ctx: Context, config: Config, agent: Agent, verdict: Verdict) -> None:
    ctx.store.record(agent, EventKind.CLEANING_UP, verdict.why)
    removal.remove(ctx, agent, reason=verdict.reason or Reason.CRASHED, config=config)
