"""Waiting for the end of agents' processes: told once, and ended by a call from elsewhere."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest

from tests.agents import agent
from tests.conftest import DEADLINE_S
from tmuxorch.adapters.system import procfs
from tmuxorch.model import State
from tmuxorch.service.health.deaths import DeathWatch


@pytest.fixture
def watch() -> Iterator[DeathWatch]:
    watch = DeathWatch()
    yield watch
    watch.close()


def test_a_death_ends_the_wait_once_however_often_the_dead_one_is_followed(
    watch: DeathWatch,
) -> None:
    sleeper = subprocess.Popen(["sleep", "1000"])
    running = agent(State.RUNNING, process=procfs.identify(sleeper.pid))
    watch.follow([running])
    assert not watch.wait(0.0)
    sleeper.kill()
    assert watch.wait(DEADLINE_S)
    watch.follow([running])
    assert not watch.wait(0.0)
    sleeper.wait()
    watch.follow([running])
    assert not watch.wait(0.0)


def test_one_that_died_before_anybody_waited_is_told(watch: DeathWatch) -> None:
    sleeper = subprocess.Popen(["sleep", "1000"])
    running = agent(State.RUNNING, process=procfs.identify(sleeper.pid))
    sleeper.kill()
    sleeper.wait()
    watch.follow([running])
    assert watch.wait(0.0)


def test_those_that_do_not_run_are_not_followed(watch: DeathWatch) -> None:
    sleeper = subprocess.Popen(["sleep", "1000"])
    ended = agent(State.EXITED, process=procfs.identify(sleeper.pid))
    watch.follow([ended])
    sleeper.kill()
    sleeper.wait()
    assert not watch.wait(0.0)


def test_a_call_from_another_thread_ends_this_wait_and_all_later_ones(watch: DeathWatch) -> None:
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.extend(watch.wait(1000.0) for _ in range(2)))
    waiting.start()
    watch.call()
    waiting.join(DEADLINE_S)
    assert found == [False, False]
