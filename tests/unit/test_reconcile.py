"""The decision table, line by line, and over every combination of facts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.agents import (
    ALIVE,
    DEAD,
    ENDED_BADLY,
    ENDED_WELL,
    FOREIGN,
    GONE,
    MISSED,
    PLACE,
    SEEN,
    SERVER_GONE,
    SPLIT,
    STARTED,
    UNKNOWN,
    agent,
    changed,
)
from tmuxorch.core.observation import (
    Observation,
    ProcessFact,
    Unknown,
    WindowFact,
    WindowSeen,
)
from tmuxorch.core.reconcile import Action, Policy, Verdict, decide
from tmuxorch.core.stake import Stake, StakeFact
from tmuxorch.model import Agent, DeadPolicy, Exit, Kind, Reason, State, Status

POLICY = Policy(DeadPolicy.CLEAN, never_started_s=120)
NOW = 1000.0
NOTHING = Stake("b")
RUNNING = agent(State.RUNNING)


def judge(who: Agent, seen: Observation, *, dead: DeadPolicy = DeadPolicy.CLEAN) -> Verdict:
    return decide(who, seen, Policy(dead, 120), NOW)


@pytest.mark.parametrize("owner", [ALIVE, UNKNOWN])
@pytest.mark.parametrize("state", [State.CREATING, State.REMOVING])
def test_what_somebody_is_at_is_left_to_them(state: State, owner: ProcessFact) -> None:
    who = agent(state, owner=ALIVE.process)
    assert judge(who, Observation(UNKNOWN, owner=owner)).action is Action.LEAVE


def test_a_creation_whose_owner_died_is_rolled_back() -> None:
    who = agent(State.CREATING, owner=ALIVE.process)
    verdict = judge(who, Observation(UNKNOWN, owner=DEAD))
    assert (verdict.action, verdict.reason) == (Action.REMOVE, Reason.CREATE_FAILED)


def test_a_removal_whose_owner_died_is_carried_on_with_its_own_reason() -> None:
    who = agent(State.REMOVING, owner=ALIVE.process, reason=Reason.FINISHED)
    verdict = judge(who, Observation(UNKNOWN, owner=DEAD))
    assert (verdict.action, verdict.reason) == (Action.REMOVE, Reason.FINISHED)


@pytest.mark.parametrize(("age_s", "status"), [(0, Status.STARTING), (120, Status.STARTING)])
def test_a_worker_without_pid_is_starting_for_two_minutes(age_s: float, status: Status) -> None:
    who = agent(State.RUNNING, process=None, started_at=NOW - age_s, status=Status.WORKING)
    verdict = judge(who, Observation(SEEN))
    assert (verdict.action, verdict.status) == (Action.SHOW, status)


@pytest.mark.parametrize("window", [SEEN, GONE])
def test_a_worker_without_pid_for_longer_never_started(window: WindowFact) -> None:
    who = agent(State.RUNNING, process=None, started_at=NOW - 121)
    verdict = judge(who, Observation(window))
    assert (verdict.action, verdict.reason) == (Action.END, Reason.NEVER_STARTED)


@pytest.mark.parametrize("started_at", [NOW - 1e6, NOW + 1e6])
@pytest.mark.parametrize(("held_for_s", "action"), [(119, Action.SHOW), (121, Action.END)])
def test_the_pane_tells_how_long_a_start_takes_whatever_the_clock_was_set_to(
    started_at: float, held_for_s: float, action: Action
) -> None:
    who = agent(State.RUNNING, process=None, started_at=started_at)
    assert judge(who, Observation(SEEN, held_for_s=held_for_s)).action is action


@pytest.mark.parametrize(("waiting_s", "action"), [(119, Action.SHOW), (121, Action.END)])
def test_a_start_of_the_future_is_waited_for_no_longer_than_any_other(
    waiting_s: float, action: Action
) -> None:
    who = agent(State.RUNNING, process=None, started_at=NOW + 1e6)
    assert judge(who, Observation(GONE, waiting_s=waiting_s)).action is action


def test_a_start_that_nobody_wrote_down_is_adopted() -> None:
    who = agent(State.RUNNING, process=None, started_at=NOW - 500)
    assert judge(who, Observation(SEEN, started=STARTED)).action is Action.ADOPT


def test_a_living_agent_in_its_window_is_left_alone() -> None:
    assert judge(RUNNING, Observation(SEEN, ALIVE, ALIVE)).action is Action.LEAVE


def test_a_living_agent_is_shown_as_what_it_does() -> None:
    verdict = judge(RUNNING, Observation(SEEN, ALIVE, ALIVE, doing=Status.WAITING))
    assert (verdict.action, verdict.status) == (Action.SHOW, Status.WAITING)


def test_a_window_that_was_moved_is_followed() -> None:
    elsewhere = replace(SEEN, place=replace(PLACE, session="mine"))
    assert judge(RUNNING, Observation(elsewhere, ALIVE, ALIVE)).action is Action.SHOW


@pytest.mark.parametrize(
    ("ended", "reason", "status"),
    [
        (ENDED_WELL, Reason.FINISHED, Status.DONE),
        (ENDED_BADLY, Reason.CRASHED, Status.CRASHED),
    ],
)
@pytest.mark.parametrize("window", [SEEN, SPLIT, FOREIGN])
def test_a_dead_process_ends_the_agent(
    window: WindowFact, ended: object, reason: Reason, status: Status
) -> None:
    verdict = judge(RUNNING, Observation(window, DEAD, ALIVE, ended=ended))  # type: ignore[arg-type]
    assert (verdict.action, verdict.reason, verdict.status) == (Action.END, reason, status)


def test_the_shim_gets_a_moment_to_say_how_the_agent_ended() -> None:
    assert judge(RUNNING, Observation(SEEN, DEAD, ALIVE)).action is Action.LOOK_AGAIN
    late = Observation(SEEN, DEAD, ALIVE, dead_for_s=2.0)
    assert judge(RUNNING, late).action is Action.END
    assert judge(RUNNING, Observation(FOREIGN, DEAD, DEAD)).action is Action.END


def test_a_respawned_shim_gets_a_moment_to_say_that_the_agent_runs() -> None:
    respawned = replace(FOREIGN, respawned=True)
    assert judge(RUNNING, Observation(respawned, DEAD, DEAD)).action is Action.LOOK_AGAIN
    late = Observation(respawned, DEAD, DEAD, dead_for_s=10.0)
    assert judge(RUNNING, late).action is Action.END


def test_a_window_whose_shim_died_gets_a_moment_to_go() -> None:
    assert judge(RUNNING, Observation(SEEN, DEAD, DEAD)).action is Action.LOOK_AGAIN


def test_a_closed_window_and_a_dead_process_are_a_closed_window() -> None:
    verdict = judge(RUNNING, Observation(GONE, DEAD, DEAD, ended=ENDED_BADLY))
    assert (verdict.action, verdict.reason) == (Action.END, Reason.WINDOW_CLOSED)


@pytest.mark.parametrize("process", [ALIVE, DEAD])
def test_a_window_missing_once_is_looked_for_again(process: ProcessFact) -> None:
    assert judge(RUNNING, Observation(MISSED, process)).action is Action.LOOK_AGAIN


@pytest.mark.parametrize("window", [GONE, SERVER_GONE])
def test_a_living_agent_without_window_is_a_stray_and_left_alone(window: WindowFact) -> None:
    verdict = judge(RUNNING, Observation(window, ALIVE, DEAD))
    assert (verdict.action, verdict.status) == (Action.SHOW, Status.STRAY)


def test_with_its_server_gone_a_dead_agent_is_lost() -> None:
    assert judge(RUNNING, Observation(SERVER_GONE, DEAD, DEAD)).action is Action.LOSE


def test_a_worker_without_pid_whose_server_is_gone_is_lost() -> None:
    who = agent(State.RUNNING, process=None, started_at=NOW - 121)
    assert judge(who, Observation(SERVER_GONE)).action is Action.LOSE


def test_a_worker_whose_restart_was_cut_off_is_lost_again_and_not_removed() -> None:
    who = agent(State.RUNNING, process=None, started_at=NOW - 121, restarts=1)
    assert judge(who, Observation(GONE)).action is Action.LOSE


@pytest.mark.parametrize("ended", [None, ENDED_BADLY])
def test_what_is_being_started_again_is_left_to_whoever_does_it(ended: object) -> None:
    who = agent(State.RUNNING, process=None, owner=ALIVE.process, started_at=NOW - 500)
    seen = Observation(SEEN, owner=ALIVE, ended=ended)  # type: ignore[arg-type]
    assert judge(who, seen).action is Action.LEAVE


def test_a_shim_that_went_with_its_agent_gets_a_moment_for_its_server_to_go_too() -> None:
    seen = Observation(SEEN, DEAD, DEAD, ended=ENDED_BADLY)
    assert judge(RUNNING, seen).action is Action.LOOK_AGAIN


@pytest.mark.parametrize("ended", [ENDED_WELL, ENDED_BADLY, None])
def test_no_word_makes_an_end_with_the_server_anything_but_a_loss(ended: object) -> None:
    seen = Observation(SERVER_GONE, DEAD, DEAD, ended=ended)  # type: ignore[arg-type]
    assert judge(RUNNING, seen).action is Action.LOSE


@pytest.mark.parametrize("reason", [Reason.CRASHED, Reason.WINDOW_CLOSED, Reason.NEVER_STARTED])
@pytest.mark.parametrize("dead", DeadPolicy)
def test_an_end_by_force_removes_nothing_once_the_server_is_gone_too(
    reason: Reason, dead: DeadPolicy
) -> None:
    who = agent(State.EXITED, reason=reason)
    seen = Observation(SERVER_GONE, DEAD, DEAD, stake=NOTHING, dead_for_s=9)
    assert judge(who, seen, dead=dead).action is Action.LEAVE


def test_an_end_by_force_removes_nothing_before_the_server_has_outlived_it_for_a_moment() -> None:
    who = agent(State.EXITED, reason=Reason.CRASHED)
    seen = Observation(GONE, DEAD, DEAD, stake=NOTHING)
    assert judge(who, seen).action is Action.LOOK_AGAIN
    assert judge(who, replace(seen, dead_for_s=1.0)).action is Action.REMOVE


def test_a_living_agent_whose_pane_is_anothers_is_a_stray() -> None:
    verdict = judge(RUNNING, Observation(FOREIGN, ALIVE))
    assert (verdict.action, verdict.status) == (Action.SHOW, Status.STRAY)


def test_an_end_that_cannot_be_read_is_recorded_as_just_an_end_and_kept() -> None:
    seen = Observation(SEEN, DEAD, ALIVE, ended=UNKNOWN)
    assert judge(RUNNING, seen).status is Status.ENDED
    over = agent(State.EXITED, status=Status.ENDED, reason=Reason.CRASHED)
    for dead in DeadPolicy:
        after = Observation(GONE, DEAD, DEAD, stake=NOTHING, dead_for_s=9)
        assert judge(over, after, dead=dead).action is Action.LEAVE


def test_a_record_that_cannot_be_read_leads_to_nothing() -> None:
    for state in State:
        who = agent(state, damage="half a row")
        assert judge(who, Observation(GONE, DEAD, DEAD, owner=DEAD)).action is Action.LEAVE


@pytest.mark.parametrize("state", [State.LOST, State.QUARANTINED])
def test_what_waits_for_a_person_is_left(state: State) -> None:
    assert judge(agent(state), Observation(GONE, DEAD)).action is Action.LEAVE


def test_an_ended_agents_window_is_closed_before_anything_else() -> None:
    who = agent(State.EXITED, kind=Kind.PERSISTENT, restart_at=1.0)
    assert judge(who, Observation(SEEN, DEAD, ALIVE)).action is Action.CLOSE


def test_a_pane_that_somebody_else_took_over_is_not_closed() -> None:
    assert judge(agent(State.EXITED), Observation(FOREIGN, DEAD, DEAD)).action is Action.LEAVE


@pytest.mark.parametrize(
    ("dead", "stake", "action"),
    [
        (DeadPolicy.CLEAN, NOTHING, Action.REMOVE),
        (DeadPolicy.CLEAN, Stake("b", untracked=("1 file",)), Action.LEAVE),
        (DeadPolicy.CLEAN, Unknown("git"), Action.LEAVE),
        (DeadPolicy.CLEAN, None, Action.LEAVE),
        (DeadPolicy.ALWAYS, Stake("b", untracked=("1 file",)), Action.REMOVE),
        (DeadPolicy.ALWAYS, Stake("b", untracked=("1 file",), odd=("its .git",)), Action.LEAVE),
        (DeadPolicy.ALWAYS, None, Action.LEAVE),
        (DeadPolicy.NEVER, NOTHING, Action.LEAVE),
    ],
)
def test_the_policy_decides_about_ended_workers(
    dead: DeadPolicy, stake: StakeFact | None, action: Action
) -> None:
    who = agent(State.EXITED, exit=Exit(0, None))
    verdict = judge(who, Observation(GONE, DEAD, DEAD, stake=stake), dead=dead)
    assert verdict.action is action
    if action is Action.REMOVE:
        assert verdict.reason is Reason.FINISHED


def test_an_agent_that_a_person_stopped_is_kept() -> None:
    who = agent(State.EXITED, stopped=True)
    assert judge(who, Observation(GONE, DEAD, stake=NOTHING)).action is Action.LEAVE


@pytest.mark.parametrize(
    ("restart_at", "action"),
    [(None, Action.LEAVE), (NOW + 1, Action.LEAVE), (NOW, Action.RESTART)],
)
def test_a_persistent_agent_comes_back_when_it_is_time(
    restart_at: float | None, action: Action
) -> None:
    who = agent(State.EXITED, kind=Kind.PERSISTENT, restart_at=restart_at)
    assert judge(who, Observation(GONE, DEAD)).action is action


def test_a_restart_does_not_wait_for_a_clock_that_was_set_back_to_come_round_again() -> None:
    who = agent(State.EXITED, kind=Kind.PERSISTENT, ended_at=NOW + 3600, restart_at=NOW + 3602)
    assert judge(who, Observation(GONE, DEAD)).action is Action.RESTART


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_new_activity_is_noted_whatever_the_clock_was_set_to(step_s: float) -> None:
    who = changed(RUNNING, last_activity_at=SEEN.activity_at + step_s)
    assert judge(who, Observation(SEEN, ALIVE, ALIVE)).action is Action.SHOW


WINDOWS: tuple[WindowFact, ...] = (SEEN, SPLIT, FOREIGN, MISSED, GONE, SERVER_GONE, UNKNOWN)
PROCESSES: tuple[ProcessFact | None, ...] = (ALIVE, DEAD, UNKNOWN, None)


def test_over_every_combination_nothing_is_done_in_ignorance_or_to_the_living() -> None:
    stakes: tuple[StakeFact | None, ...] = (NOTHING, Stake("b", untracked=("x",)), UNKNOWN, None)
    count = 0
    for state, kind, stopped, has_process in product(State, Kind, (True, False), (True, False)):
        who = agent(state, kind=kind, stopped=stopped, restart_at=1.0, owner=ALIVE.process)
        who = who if has_process else changed(who, process=None)
        for window, process, shim, owner in product(WINDOWS, PROCESSES, PROCESSES, PROCESSES[:3]):
            for ended, stake, dead in product((None, ENDED_WELL), stakes, DeadPolicy):
                seen = Observation(
                    window, process, shim, owner, ended=ended, stake=stake, dead_for_s=9
                )
                verdict = decide(who, seen, Policy(dead, 120), NOW)
                check(who, seen, verdict)
                count += 1
    assert count > 100_000


DESTRUCTIVE = {Action.END, Action.LOSE, Action.CLOSE, Action.RESTART, Action.REMOVE}


def check(who: Agent, seen: Observation, verdict: Verdict) -> None:
    if verdict.action not in DESTRUCTIVE:
        return
    half_done = who.state in (State.CREATING, State.REMOVING)
    if half_done:
        assert not isinstance(seen.owner, Unknown), "the owner may be at it"
        return
    if who.run.process is not None and who.state is State.RUNNING:
        assert seen.process is DEAD
        assert not isinstance(seen.window, Unknown)
    assert not isinstance(seen.process, type(ALIVE)) or who.run.process is None
    assert not isinstance(seen.process, Unknown) or who.state is State.RUNNING
    if verdict.action is Action.REMOVE:
        assert who.state is State.EXITED
        assert not who.run.stopped
        assert not isinstance(seen.window, Unknown | WindowSeen) or seen.window is FOREIGN
    if verdict.action is Action.CLOSE:
        assert isinstance(seen.window, WindowSeen)
        assert seen.window.held
