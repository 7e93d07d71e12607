"""The wall clock may be set to anything between two events: no fact hangs on it."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from typing import Any

import psutil
import pytest

from tests.conftest import World, has_ended, wait_for
from tests.e2e.test_watch_death import SLEEP, change, column, kill, listed, watch_once, write

HOUR_S = 3600.0


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_a_clean_exit_is_one_though_the_clock_was_set_since_the_start(
    world: World, step_s: float
) -> None:
    made = world.new("-n", "a", "--", "sh", "-c", "read line")
    write(made)
    for name in ("created_at", "started_at", "last_activity_at"):
        change(world, made, **{name: column(world, made, name) + step_s})
    world.tmux("send-keys", "-t", made["tmux"]["pane"], "Enter")
    wait_for((world.state / "run" / made["id"] / "exit").exists)
    wait_for(lambda: not psutil.pid_exists(made["process"]["pid"]))
    assert listed(world) == {"a": ("exited", "done")}
    watch_once(world)
    assert listed(world) == {"a": ("exited", "done")}
    [shown] = world.json("ls")
    assert shown["exit"] == {"code": 0, "signal": None}


def test_an_agent_whose_start_nobody_wrote_down_is_adopted_by_its_run(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    change(world, made, process=None, shim=None, started_at=time.time() + HOUR_S)
    assert watch_once(world) == ["adopted"]


@pytest.mark.parametrize("at", [0.0, 1e10])
def test_words_of_an_earlier_run_are_not_about_this_one(world: World, at: float) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    world.run("restart", "a")
    [again] = world.json("ls")
    kill_all(again)
    (world.state / "run" / made["id"] / "exit").write_text(f"code 0\nat {at}\nrun 0\n")
    assert listed(world)["a"][0] == "exited"
    watch_once(world)
    assert listed(world) == {"a": ("exited", "crashed")}
    assert world.json("ls")[0]["exit"] is None


def kill_all(worker: dict[str, Any]) -> None:
    """Without a last word: the shim is stopped before the agent goes."""
    os.kill(worker["process"]["shim_pid"], signal.SIGSTOP)
    kill(worker)
    kill(worker, "shim_pid")
    for who in ("shim_pid", "pid"):
        wait_for(lambda pid=worker["process"][who]: has_ended(pid))  # type: ignore[misc]


def test_a_persistent_agent_that_lived_long_is_healthy_though_the_clock_was_set_back(
    world: World,
) -> None:
    (world.home / "config.toml").write_text("[restart]\nlimit = 1\nhealthy_s = 0.01\n")
    made = world.new("-n", "a", "--kind", "persistent", *SLEEP)
    deaths = [time.time() - 1.0] * 3
    change(world, made, started_at=time.time() + HOUR_S, deaths=str(deaths))
    kill(made)
    watch_once(world)
    assert column(world, made, "deaths").count(".") == 1


def test_of_two_removed_under_one_name_the_later_removal_counts(world: World) -> None:
    removed = []
    for name in ("one", "two"):
        made = world.new("-n", "a", *SLEEP)
        write(made, name)
        world.run("rm", "-y", "a")
        removed.append(made["id"])
    with sqlite3.connect(world.state / "tmuxorch.db") as db:
        back = "UPDATE history SET removed_at = removed_at - ? WHERE id = ?"
        db.execute(back, [HOUR_S, removed[1]])
    db.close()
    assert [entry["id"] for entry in world.json("history")] == removed[::-1]
    world.run("restore", "a")
    [back_again] = world.json("ls")
    assert os.path.exists(f"{back_again['worktree']}/two")
