"""What is shown for a record and a glance: the one answer of every surface."""

from __future__ import annotations

import pytest

from tests.agents import ALIVE, DEAD, ENDED_BADLY, ENDED_WELL, UNKNOWN, agent
from tmuxorch.core.observation import Ended, Glance, ProcessFact, Unknown
from tmuxorch.core.view import state_and_status
from tmuxorch.model import State, Status

RUNNING = agent(State.RUNNING)


@pytest.mark.parametrize(
    ("ended", "status"), [(ENDED_WELL, Status.DONE), (ENDED_BADLY, Status.CRASHED)]
)
def test_an_end_that_its_shim_told_of_is_known(ended: Ended, status: Status) -> None:
    seen = Glance(DEAD, shim=ALIVE, server=ALIVE, ended=ended)
    assert state_and_status(RUNNING, seen) == (State.EXITED, status)


@pytest.mark.parametrize("ended", [None, Unknown("no file")])
def test_an_end_without_the_shims_word_is_just_an_end(ended: Unknown | None) -> None:
    seen = Glance(DEAD, shim=ALIVE, server=ALIVE, ended=ended)
    assert state_and_status(RUNNING, seen) == (State.EXITED, Status.ENDED)


def test_with_a_dead_shim_nobody_knows_yet_whose_end_it_was() -> None:
    seen = Glance(DEAD, shim=DEAD, server=ALIVE, ended=ENDED_BADLY)
    assert state_and_status(RUNNING, seen) == (State.EXITED, Status.ENDED)


@pytest.mark.parametrize("ended", [None, ENDED_WELL, ENDED_BADLY])
def test_with_its_tmux_server_dead_it_is_lost_however_it_ended(ended: Ended | None) -> None:
    seen = Glance(DEAD, shim=DEAD, server=DEAD, ended=ended)
    assert state_and_status(RUNNING, seen) == (State.LOST, Status.LOST)


@pytest.mark.parametrize("server", [ALIVE, DEAD, UNKNOWN])
def test_an_end_that_a_person_asked_for_is_stopped(server: ProcessFact) -> None:
    seen = Glance(DEAD, shim=DEAD, server=server, ended=ENDED_BADLY)
    stopping = agent(State.RUNNING, stopped=True)
    assert state_and_status(stopping, seen) == (State.EXITED, Status.STOPPED)


@pytest.mark.parametrize("status", [Status.DONE, Status.STOPPED, Status.CRASHED, Status.ENDED])
def test_of_an_ended_agent_the_record_is_shown(status: Status) -> None:
    who = agent(State.EXITED, status=status)
    assert state_and_status(who, Glance()) == (State.EXITED, status)


def test_a_record_that_cannot_be_read_is_unknown() -> None:
    who = agent(State.QUARANTINED, damage="half a row")
    assert state_and_status(who, Glance()) == (State.QUARANTINED, Status.UNKNOWN)
