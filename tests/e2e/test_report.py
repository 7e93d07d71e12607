"""`report`: an agent's own hooks say what it is doing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import World, wait_for
from tmuxorch.adapters.store.records import open_store

SLEEP = ("--", "sleep", "1000")
HEAVY = {"textual", "git", "libtmux", "psutil", "rich", "click", "subprocess"}


def own(agent: dict[str, Any]) -> dict[str, str]:
    return {"TMUXORCH_AGENT_ID": agent["id"]}


def status(world: World) -> str:
    [row] = world.json("ls")
    return str(row["status"])


@pytest.mark.parametrize("word", ["waiting", "idle", "working"])
def test_what_is_reported_is_shown_everywhere(world: World, word: str) -> None:
    made = world.new("-n", "a", *SLEEP)
    done = world.run("report", word, env=own(made), cwd=world.directory)
    assert (done.stdout, done.stderr) == ("", "")
    assert status(world) == word
    assert world.json("show", "a")["status"] == word


def test_an_agents_own_hook_finds_its_agent(world: World) -> None:
    script = "tmuxorch report waiting; exec sleep 1000"
    world.new("-n", "a", "--", "sh", "-c", script)
    wait_for(lambda: status(world) == "waiting")


def test_outside_of_an_agent_it_does_nothing_and_succeeds(world: World) -> None:
    for args in (["report", "idle"], ["report", "idle", "--json"]):
        done = world.run(*args)
        assert done.returncode == 0
        assert done.stdout in ("", "null\n")
    assert not world.state.joinpath("run").exists()


def test_another_agent_is_named(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    shown = world.json("report", "idle", "--agent", made["id"])
    assert (shown["id"], shown["status"]) == (made["id"], "idle")
    world.run("report", "working", "--agent", "a")
    assert status(world) == "working"


def test_a_wrong_word_is_wrong_usage_and_changes_nothing(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    before = status(world)
    for args in (["report", "busy"], ["report", "busy", "--agent", "a"], ["report"]):
        assert world.run(*args, env=own(made), ok=False).returncode == 2
    assert status(world) == before


@pytest.mark.parametrize("how", ["unknown", "stopped"])
def test_one_that_does_not_run_is_an_expected_failure(world: World, how: str) -> None:
    made = world.new("-n", "a", *SLEEP)
    agent = own(made) if how == "stopped" else {"TMUXORCH_AGENT_ID": "0123456789ab"}
    world.run("stop", "a")
    done = world.run("report", "working", env=agent, ok=False)
    assert done.returncode == 1
    assert "nothing was noted" in done.stderr
    assert status(world) == "stopped"


def test_a_restart_forgets_what_was_reported(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    world.run("report", "waiting", env=own(made))
    world.run("restart", "a")
    store = open_store(str(world.state))
    [agent] = store.agents()
    store.close()
    assert (agent.run.reported, agent.run.reported_at, agent.status) == (None, None, "working")


def test_the_command_line_of_a_hook_imports_nothing_heavy(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tmuxorch", "report", "idle"],
        env={**world.environ, **own(made)},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()
    }
    assert "sqlite3" in modules
    assert not modules & HEAVY
    assert status(world) == "idle"
