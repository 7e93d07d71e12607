"""A pane that its person gave to another program is theirs."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from tests.conftest import World, wait_for
from tests.e2e.test_watch_death import SLEEP, kill, listed, watch_once, write


def take_over(world: World, made: dict[str, Any]) -> psutil.Process:
    """Start a program of one's own in the agent's pane."""
    pane = made["tmux"]["pane"]
    world.tmux("respawn-pane", "-k", "-t", pane, "sleep", "998")
    wait_for(lambda: not psutil.pid_exists(made["process"]["pid"]))
    return psutil.Process(int(world.tmux("display-message", "-p", "-t", pane, "#{pane_pid}")))


@pytest.mark.parametrize(
    "verbs",
    [
        [["rm", "-y", "a"]],
        [["stop", "a"]],
        [["restart", "a"]],
        [["watch", "--once"]],
        [["watch", "--once"], ["rm", "-y", "a"], ["sweep", "--apply"]],
        [["restart", "a"], ["stop", "a"], ["rm", "-y", "a"]],
    ],
)
def test_no_verb_closes_it(world: World, verbs: list[list[str]]) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    mine = take_over(world, made)
    for verb in verbs:
        world.run(*verb)
    panes = world.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}").splitlines()
    assert f"{made['tmux']['pane']} {mine.pid}" in panes
    assert mine.is_running()


def test_nothing_is_typed_into_it(world: World) -> None:
    made = world.new("-n", "a", "--", "sh", "-c", "trap '' HUP TERM; while :; do sleep 0.1; done")
    pane = made["tmux"]["pane"]
    psutil.Process(made["process"]["shim_pid"]).suspend()
    world.tmux("set-option", "-w", "-t", pane, "remain-on-exit", "on")
    world.tmux("respawn-pane", "-k", "-t", pane, "sh", "-c", "cat >typed")
    refused = world.run("send", "a", "hello", ok=False)
    assert refused.returncode == 1
    assert "another program was started" in refused.stderr
    assert "hello" not in world.screen(pane)


def test_a_living_agent_whose_pane_was_taken_is_a_stray(world: World) -> None:
    made = world.new("-n", "a", "--", "sh", "-c", "trap '' HUP TERM; while :; do sleep 0.1; done")
    shim = psutil.Process(made["process"]["shim_pid"])
    wait_for(lambda: psutil.Process(made["process"]["pid"]).children())
    kill(made, "shim_pid")
    wait_for(lambda: not shim.is_running() or shim.status() == psutil.STATUS_ZOMBIE)
    assert "seen stray" in watch_once(world)
    assert listed(world) == {"a": ("running", "stray")}


def test_an_agent_that_its_person_respawned_is_followed(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    world.tmux("respawn-pane", "-k", "-t", made["tmux"]["pane"])
    started = world.state / "run" / made["id"] / "started"
    wait_for(lambda: started.exists() and str(made["process"]["pid"]) not in started.read_text())
    assert watch_once(world) == ["adopted"]
    [shown] = world.json("ls")
    assert shown["process"]["alive"] is True
    assert shown["process"]["pid"] != made["process"]["pid"]
