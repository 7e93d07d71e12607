"""After a tmux crash: everything is lost, nothing is removed, one command brings it back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import World, wait_for
from tests.e2e.test_watch_death import SLEEP, column, kill, listed, watch_once, write
from tests.e2e.test_watch_weather import server_of


def crash(world: World, made: list[dict[str, Any]]) -> None:
    server_of(world).kill()
    wait_for(lambda: not any(psutil.pid_exists(w["process"]["pid"]) for w in made))


def test_without_a_watcher_the_first_look_and_the_first_restart_know_who_is_lost(
    world: World,
) -> None:
    made = [world.new("-n", name, *SLEEP) for name in ("a", "b")]
    crash(world, made)
    assert set(listed(world).values()) == {("lost", "lost")}
    world.run("restart", "--lost")
    assert {state for state, _ in listed(world).values()} == {"running"}
    assert world.json("history") == []


# An agent that takes the hang-up for the end of its work says that all is well.
POLITE = ("--", "sh", "-c", "trap 'exit 0' HUP TERM; while :; do sleep 0.05; done")


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "kill-server"])
@pytest.mark.parametrize("program", [SLEEP, POLITE])
def test_however_a_server_ends_no_agent_is_called_crashed_or_removed(
    world: World, end: str, program: tuple[str, ...]
) -> None:
    made = [world.new("-n", f"w{n}", *program) for n in range(4)]
    with world.watching():
        if end == "kill-server":
            world.tmux("kill-server")
        else:
            os.kill(server_of(world).pid, getattr(signal, end))
        wait_for(lambda: {column(world, w, "state") for w in made} == {"lost"})
    assert set(listed(world).values()) == {("lost", "lost")}
    assert watch_once(world) == []
    assert world.json("history") == []
    assert all(Path(w["worktree"]).is_dir() for w in made)


def test_a_worker_that_crashed_as_its_server_did_is_kept(world: World) -> None:
    (world.home / "config.toml").write_text("[cleanup]\ndead = 'never'\n")
    made = world.new("-n", "a", *SLEEP)
    kill(made)
    assert watch_once(world) == ["ended", "closed its window"]
    crash(world, [made])
    (world.home / "config.toml").write_text("[cleanup]\ndead = 'always'\n")
    assert watch_once(world) == []
    assert listed(world) == {"a": ("exited", "crashed")}
    assert Path(made["worktree"]).is_dir()


def test_ls_does_not_announce_a_crash_while_the_shims_word_is_due(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    kill(made)
    word = world.state / "run" / made["id"] / "exit"
    wait_for(word.exists)
    later = word.rename(word.with_name("later"))
    assert listed(world) == {"a": ("exited", "ended")}
    assert world.json("show", "a")["status"] == "ended"
    later.rename(word)
    assert listed(world) == {"a": ("exited", "crashed")}


def environment(worker: dict[str, Any]) -> dict[str, str]:
    return psutil.Process(worker["process"]["pid"]).environ()


@pytest.mark.parametrize("how", [["restart", "a"], ["restart", "--lost"]])
def test_a_restart_has_the_environment_of_the_first_start(world: World, how: list[str]) -> None:
    made = world.new("-n", "a", *SLEEP, env={"API_KEY": "first", "MODEL": "large"})
    crash(world, [made])
    world.run(*how, env={"API_KEY": "another's"})
    [again] = world.json("ls")
    assert environment(again)["API_KEY"] == "first"
    assert environment(again)["MODEL"] == "large"


def fake_claude(world: World, body: str = "exec sleep 1000") -> None:
    """A program by that name which keeps what it was started with."""
    program = world.directory / "bin" / "claude"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{world.directory}/argv"\n{body}\n')
    program.chmod(0o755)
    world.environ["PATH"] = f"{program.parent}:{world.environ['PATH']}"


def test_a_resumed_conversation_keeps_the_flags_of_the_first_start(world: World) -> None:
    fake_claude(world)
    (world.home / "config.toml").write_text(
        "[agents.claude]\ncommand = ['claude', '--model', 'opus', '--session-id',"
        " '{conversation}', '--verbose', ['--', '{task}']]\n"
    )
    made = world.new("do this -- and that", "-n", "a", "-a", "claude")
    talk = column(world, made, "conversation")
    for _ in range(2):
        world.run("restart", "a")
    first, *later = (world.directory / "argv").read_text().splitlines()
    assert first == f"--model opus --session-id {talk} --verbose -- do this -- and that"
    assert later == [f"--model opus --verbose --resume {talk}"] * 2


def interrupt(world: World) -> None:
    """Press Ctrl-C while the program is being watched in its first moments."""
    restart = subprocess.Popen(
        ["tmuxorch", "restart", "a"], cwd=world.repo, env=world.environ, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: (world.directory / "argv").read_text().count("\n") == 2)
    restart.send_signal(signal.SIGINT)
    assert restart.wait(30) == 130


def break_program(world: World) -> None:
    fake_claude(world, "echo 'API is overloaded'; exit 1")
    assert world.run("restart", "a", ok=False).returncode == 1


@pytest.mark.parametrize("fail", [interrupt, break_program])
def test_a_restart_that_fails_leaves_the_agent_lost_and_its_conversation_kept(
    world: World, fail: Callable[[World], None]
) -> None:
    fake_claude(world)
    made = world.new("do this", "-n", "a", "-a", "claude")
    talk = column(world, made, "conversation")
    crash(world, [made])
    assert watch_once(world) == ["lost"]
    with world.watching():
        fail(world)
        assert column(world, made, "state") == "lost"
    assert watch_once(world) == []
    assert listed(world) == {"a": ("lost", "lost")}
    assert column(world, made, "conversation") == talk
    assert world.marked_panes() == []
    fake_claude(world)
    world.run("restart", "--lost")
    assert (world.directory / "argv").read_text().endswith(f"--resume {talk}\n")


def test_a_restart_that_was_killed_midway_leaves_the_agent_lost(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    crash(world, [made])
    assert watch_once(world) == ["lost"]
    restart = subprocess.Popen(["tmuxorch", "restart", "a"], cwd=world.repo, env=world.environ)
    wait_for(lambda: column(world, made, "state") == "running")
    restart.kill()
    restart.wait(30)
    watch_once(world)
    assert listed(world)["a"][0] in ("running", "lost")
    assert world.json("history") == []


def test_a_stopped_agent_whose_restart_fails_is_still_the_persons(world: World) -> None:
    fake_claude(world)
    made = world.new("do this", "-n", "a", "-a", "claude")
    world.run("stop", "a")
    break_program(world)
    assert watch_once(world) == []
    assert listed(world) == {"a": ("exited", "crashed")}
    assert Path(made["worktree"]).is_dir()
    write(made)
