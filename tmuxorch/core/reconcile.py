"""The decision table: what follows from a record and from what was seen of the agent.

Pure: the same input gives the same verdict, and the verdict carries the facts that led to it.
`Unknown` never leads to anything but showing that it is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tmuxorch.core.observation import (
    Alive,
    Dead,
    Ended,
    Glance,
    Observation,
    ServerGone,
    Started,
    Unknown,
    WindowGone,
    WindowMissed,
    WindowSeen,
)
from tmuxorch.core.stake import Stake, describe
from tmuxorch.core.view import describe_exit, ended_status, exit_of, state_and_status
from tmuxorch.model import Agent, DeadPolicy, Exit, Kind, Reason, State, Status

# The shim writes how the agent ended within milliseconds of its end; one that has not done
# so after this long (stopped, or a full disk) will not.
SHIM_ANSWERS_S = 2.0
# How long a respawned shim may take to say that the agent runs, on a machine that is busy.
RESPAWN_S = 10.0
# What ends a whole session (a shutdown, a crash) takes agents and tmux server within this time
# of each other: before it is over, an end by force is no reason to remove anything.
SETTLED_S = 0.5
# How far the record of an agent's last activity may lag behind.
ACTIVITY_STEP_S = 10.0


class Action(StrEnum):
    """What is to be done; all but the first four change more than what is shown."""

    LEAVE = "leave"
    LOOK_AGAIN = "look again"
    SHOW = "show"
    ADOPT = "adopt"
    END = "end"
    LOSE = "lose"
    CLOSE = "close"
    RESTART = "restart"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An action with what it needs, and the facts that justify it."""

    action: Action
    why: str
    status: Status | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    dead: DeadPolicy
    never_started_s: float


def decide(agent: Agent, seen: Observation, policy: Policy, now: float) -> Verdict:
    """The verdict for one agent; LEAVE if all is as recorded."""
    if agent.damage:
        return Verdict(Action.LEAVE, f"its record cannot be read: {agent.damage}")
    match agent.state:
        case State.CREATING:
            return _half_done(agent, seen, Reason.CREATE_FAILED, "its creation was cut off")
        case State.REMOVING:
            reason = agent.reason or Reason.USER
            return _half_done(agent, seen, reason, "its removal was cut off")
        case State.RUNNING if agent.run.process is None:
            return _without_process(agent, seen, policy, now)
        case State.RUNNING:
            return _running(agent, seen)
        case State.EXITED:
            return _exited(agent, seen, policy, now)
        case State.LOST | State.QUARANTINED:
            return Verdict(Action.LEAVE, f"{agent.state}: waits for a person")


def _half_done(agent: Agent, seen: Observation, reason: Reason, what: str) -> Verdict:
    """Made or removed by somebody: theirs while they live, ours to finish once they are dead."""
    if agent.owner is None or isinstance(seen.owner, Dead):
        how = seen.owner.how if isinstance(seen.owner, Dead) else "nobody is at it"
        return Verdict(Action.REMOVE, f"{what} ({how}); {facts(seen)}", reason=reason)
    return Verdict(Action.LEAVE, f"pid {agent.owner.pid} is at it")


def _without_process(agent: Agent, seen: Observation, policy: Policy, now: float) -> Verdict:
    if agent.owner is not None and not isinstance(seen.owner, Dead):
        return Verdict(Action.LEAVE, f"pid {agent.owner.pid} is starting it")
    if seen.started is not None:
        return _adopt(seen.started)
    match seen.window:
        case Unknown():
            return _show(agent, seen, Status.UNKNOWN)
        case ServerGone():
            return _lose(seen)
    age_s = seen.held_for_s
    if age_s is None:
        age_s = max(now - (agent.run.started_at or agent.task.created_at), seen.waiting_s)
    if isinstance(seen.ended, Ended):
        return _end(agent, seen, Reason.CRASHED, "its program could not be started")
    if age_s <= policy.never_started_s:
        return _show(agent, seen, Status.STARTING)
    if isinstance(seen.window, WindowMissed):
        return Verdict(Action.LOOK_AGAIN, facts(seen))
    if agent.run.number and agent.task.kind is Kind.WORKER:
        # What it was before its restart was cut off (lost, kept for review) nobody knows now.
        return Verdict(Action.LOSE, f"its restart was cut off {age_s:.0f} s ago; {facts(seen)}")
    return _end(agent, seen, Reason.NEVER_STARTED, f"no process for {age_s:.0f} s")


def _adopt(started: Started) -> Verdict:
    return Verdict(Action.ADOPT, f"its program runs as pid {started.process.pid}")


def _lose(seen: Observation) -> Verdict:
    return Verdict(Action.LOSE, f"its tmux server is gone; {facts(seen)}")


def _running(agent: Agent, seen: Observation) -> Verdict:
    """An end is the agent's own only if its window was there, or its server alive, after it."""
    if isinstance(seen.process, Dead) and seen.started is not None:
        return _adopt(seen.started)
    match seen.process, seen.window:
        case Dead(), Unknown():
            glance = Glance(seen.process, seen.shim, ended=seen.ended)
            return _show(agent, seen, state_and_status(agent, glance)[1])
        case (Unknown() | None, _) | (_, Unknown()):
            return _show(agent, seen, Status.UNKNOWN)
        case _, WindowMissed():
            return Verdict(Action.LOOK_AGAIN, facts(seen))
        case Alive(), WindowSeen(held=True):
            return _show(agent, seen, seen.doing)
        case Alive(), WindowSeen() | WindowGone() | ServerGone():
            return _show(agent, seen, Status.STRAY)
        case Dead(), ServerGone() if not agent.run.stopped:
            return _lose(seen)
        case Dead(), WindowSeen(respawned=True) if seen.dead_for_s < RESPAWN_S:
            return Verdict(Action.LOOK_AGAIN, "its pane was respawned, and its shim begins anew")
        case Dead(), WindowSeen(held=True) if _is_word_due(seen):
            return Verdict(Action.LOOK_AGAIN, "its shim is about to say how it ended, or to go")
        case Dead(), WindowSeen():
            reason = reason_of(agent, exit_of(seen.ended))
            return _end(agent, seen, reason, "its process has ended")
        case Dead(), WindowGone() | ServerGone():
            return _end(agent, seen, Reason.WINDOW_CLOSED, "its window was closed")
    raise AssertionError("unreachable: every pair of facts has its line")


def _is_word_due(seen: Observation) -> bool:
    """Whether the next moment tells more: the shim how the agent ended, or why it died too.

    With a dead shim the window goes as well, as soon as tmux has noticed, or has gone itself.
    """
    tells_more = seen.ended is None or isinstance(seen.shim, Dead)
    return tells_more and seen.dead_for_s < SHIM_ANSWERS_S


def _exited(agent: Agent, seen: Observation, policy: Policy, now: float) -> Verdict:
    match seen.process:
        case Alive():
            return Verdict(Action.LEAVE, "its recorded process lives, so it is not touched")
        case Unknown(why):
            return Verdict(Action.LEAVE, f"its process cannot be seen: {why}")
    match seen.window:
        case Unknown(why):
            return Verdict(Action.LEAVE, f"window unknown: {why}")
        case WindowMissed():
            return Verdict(Action.LOOK_AGAIN, facts(seen))
        case WindowSeen(held=True):
            return Verdict(Action.CLOSE, f"its process has ended; {facts(seen)}")
    if agent.run.stopped:
        return Verdict(Action.LEAVE, "a person stopped it")
    if agent.task.kind is Kind.PERSISTENT:
        if agent.restart_at is None:
            return Verdict(Action.LEAVE, "it died too often and was given up")
        was_set_back = agent.run.ended_at is not None and now < agent.run.ended_at
        if now < agent.restart_at and not was_set_back:
            return Verdict(Action.LEAVE, "it is started again in a moment")
        return Verdict(Action.RESTART, f"persistent, death {len(agent.deaths)}; {facts(seen)}")
    verdict = _worker_exited(agent, seen, policy)
    if verdict.action is Action.REMOVE and verdict.reason is not Reason.FINISHED:
        # It may have gone with its server: then it is no less lost than the others.
        if isinstance(seen.window, ServerGone):
            return Verdict(Action.LEAVE, f"kept for review: {facts(seen)}")
        if seen.dead_for_s < SETTLED_S and agent.run.process is not None:
            return Verdict(Action.LOOK_AGAIN, f"its tmux server may be ending too; {facts(seen)}")
    return verdict


def _worker_exited(agent: Agent, seen: Observation, policy: Policy) -> Verdict:
    reason = agent.reason or reason_of(agent, agent.run.exit)
    if agent.status is Status.ENDED:
        return Verdict(Action.LEAVE, "kept for review: how it ended is not known")
    if isinstance(seen.stake, Stake) and seen.stake.odd:
        return Verdict(Action.LEAVE, f"kept for review: {'; '.join(seen.stake.odd)}")
    if policy.dead is DeadPolicy.ALWAYS and seen.stake is None:
        return Verdict(Action.LEAVE, "its worktree has not been looked at yet")
    if policy.dead is DeadPolicy.ALWAYS:
        return Verdict(Action.REMOVE, f"cleanup.dead is always; {facts(seen)}", reason=reason)
    match seen.stake:
        case Stake(empty=True) if policy.dead is DeadPolicy.CLEAN:
            why = f"it has ended and nothing is at stake; {facts(seen)}"
            return Verdict(Action.REMOVE, why, reason=reason)
        case Stake(empty=False) as stake:
            return Verdict(Action.LEAVE, f"kept for review: {'; '.join(describe(stake))}")
        case Unknown(why):
            return Verdict(Action.LEAVE, f"what is at stake is unknown: {why}")
    return Verdict(Action.LEAVE, "kept for review")


def _end(agent: Agent, seen: Observation, reason: Reason, what: str) -> Verdict:
    status = ended_status(agent, exit_of(seen.ended))
    if isinstance(seen.ended, Unknown) and not agent.run.stopped:
        status = Status.ENDED
    return Verdict(Action.END, f"{what}; {facts(seen)}", status=status, reason=reason)


def _show(agent: Agent, seen: Observation, status: Status) -> Verdict:
    """SHOW only what the record does not say already."""
    is_asked = status is Status.WAITING and seen.question != agent.run.question
    if (
        status is agent.status
        and not is_asked
        and not (
            isinstance(seen.window, WindowSeen)
            and (_has_moved(agent, seen.window) or _is_stale(agent, seen.window))
        )
    ):
        return Verdict(Action.LEAVE, "all is as recorded", status=status)
    return Verdict(Action.SHOW, facts(seen), status=status)


def _has_moved(agent: Agent, window: WindowSeen) -> bool:
    old, new = agent.run.place, window.place
    return old is None or (old.pane, old.window, old.session) != (new.pane, new.window, new.session)


def _is_stale(agent: Agent, window: WindowSeen) -> bool:
    # Either way: after the clock was set back new activity has an earlier time.
    return abs(window.activity_at - (agent.run.last_activity_at or 0.0)) >= ACTIVITY_STEP_S


def reason_of(agent: Agent, exit_: Exit | None) -> Reason:
    """Why an agent that ended by itself is over."""
    crashed = ended_status(agent, exit_) is Status.CRASHED
    return Reason.CRASHED if crashed else Reason.FINISHED


def facts(seen: Observation) -> str:
    """What was seen, in words for the decision log."""
    parts = [f"window {window_words(seen)}"]
    for name, fact in (("process", seen.process), ("shim", seen.shim)):
        match fact:
            case Alive(process):
                parts.append(f"{name} alive (pid {process.pid})")
            case Dead(how):
                parts.append(f"{name} dead ({how})")
            case Unknown(why):
                parts.append(f"{name} unknown ({why})")
    match seen.ended:
        case Ended(exit_, error):
            parts.append(f"ended with {error or describe_exit(exit_)}")
        case Unknown(why):
            parts.append(f"how it ended unknown ({why})")
    return ", ".join(parts)


def window_words(seen: Observation) -> str:
    match seen.window:
        case WindowSeen(place, held, others):
            beside = f", {others} other panes beside it" if others else ""
            foreign = "" if held else ", no longer the agent's own"
            return f"seen ({place.session} {place.window} {place.pane}{beside}{foreign})"
        case WindowMissed():
            return "missing in one answer"
        case WindowGone():
            return "gone (its tmux server lives)"
        case ServerGone(how):
            return f"gone with its tmux server ({how})"
        case Unknown(why):
            return f"unknown ({why})"
