"""The watcher in bad weather: crashes, stops, locks, other watchers, and its own death."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.conftest import World, wait_for
from tests.e2e.test_watch_death import SLEEP, column, kill, listed, watch_once, write
from tests.faults.test_sagas import CREATE_STEPS, DRIVER, run_with_fault
from tmuxorch.adapters.store.watchfile import observe_watcher


def server_of(world: World) -> psutil.Process:
    return psutil.Process(int(world.tmux("display-message", "-p", "#{pid}")))


def test_a_stopped_tmux_server_makes_its_agents_unknown_and_nothing_else(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    server = server_of(world)
    with world.watching():
        wait_for(lambda: listed(world)["a"][1] in ("working", "idle"))
        server.send_signal(signal.SIGSTOP)
        try:
            wait_for(lambda: listed(world) == {"a": ("running", "unknown")})
        finally:
            server.send_signal(signal.SIGCONT)
        wait_for(lambda: listed(world)["a"][1] in ("working", "idle"))
    assert Path(made["worktree"]).is_dir()
    assert world.json("history") == []


def test_a_socket_that_vanishes_is_not_a_server_that_is_gone(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    server = server_of(world)
    os.unlink(world.socket)
    assert watch_once(world) == ["seen unknown"]
    assert listed(world) == {"a": ("running", "unknown")}
    server.send_signal(signal.SIGUSR1)
    wait_for(lambda: os.path.exists(world.socket))
    assert watch_once(world) == [f"seen {listed(world)['a'][1]}"]
    assert listed(world)["a"][1] in ("working", "idle")


def test_a_new_server_on_the_same_socket_is_not_the_one_that_had_the_window(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    server_of(world).kill()
    wait_for(lambda: not psutil.pid_exists(made["process"]["pid"]))
    world.tmux("new-session", "-d", "-s", "mine", "sleep", "996")
    assert watch_once(world) == ["lost"]
    assert listed(world) == {"a": ("lost", "lost")}


def test_a_watcher_killed_in_the_middle_of_a_removal_is_carried_on(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    kill(made)
    for step in ("remove:saved", "remove:worktree"):
        code = DRIVER.replace("from tmuxorch.cli import main, session", DRIVEN)
        died = subprocess.run(
            [sys.executable, "-c", code, step, "SIGKILL", "watch", "--once"],
            cwd=world.repo,
            env=world.environ,
            capture_output=True,
            check=False,
        )
        assert died.returncode == -signal.SIGKILL
        assert [state for state, _ in listed(world).values()] == ["removing"]
    assert watch_once(world) == ["removed"]
    assert [e["id"] for e in world.json("history")] == [made["id"]]
    world.assert_nothing_left()


# The watcher opens contexts for its hands through its own module.
DRIVEN = """from tmuxorch.cli import main, session, watch
watch.open_context = lambda *a, **k: session.open_context(*a, **k)"""


@pytest.mark.parametrize("step", CREATE_STEPS[:-1])
def test_a_creation_that_was_killed_is_rolled_back(world: World, step: str) -> None:
    died = run_with_fault(world, f"create:{step}", "SIGKILL", "new", "-n", "a", *SLEEP)
    assert died.returncode == -signal.SIGKILL
    assert watch_once(world)[-1] == "removed"
    assert [e["reason"] for e in world.json("history")] == ["create_failed"]
    world.assert_nothing_left()


def test_one_watcher_leads_and_the_second_says_who(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    with world.watching() as first:
        second = world.run("watch", ok=False)
        assert second.returncode == 1
        assert f"pid {first.pid} watches already" in second.stderr
        first.kill()
        first.wait()
        assert not observe_watcher(str(world.state)).alive
        with world.watching() as third:
            assert observe_watcher(str(world.state)).pid == third.pid


def test_a_locked_store_is_waited_for(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    with world.watching():
        db = sqlite3.connect(world.state / "tmuxorch.db", isolation_level=None)
        db.execute("BEGIN EXCLUSIVE")
        kill(made)
        passes = observe_watcher(str(world.state)).last_pass_at
        assert passes is not None
        db.execute("ROLLBACK")
        db.close()
        wait_for(lambda: listed(world) == {"a": ("exited", "crashed")})


def test_new_starts_a_watcher_where_a_person_can_read_along(world: World) -> None:
    world.environ.pop("TMUXORCH_WATCHER")
    made = world.new("-n", "a", *SLEEP)
    watcher = observe_watcher(str(world.state))
    assert watcher.alive
    kill(made)
    wait_for(lambda: world.json("ls") == [])
    log = world.tmux("capture-pane", "-p", "-J", "-t", "=tmuxorch:watch")
    assert "a: ended: its process has ended" in log
    assert watcher.pid is not None
    os.kill(watcher.pid, signal.SIGKILL)
    wait_for(lambda: not observe_watcher(str(world.state)).alive)
    world.new("-n", "b", *SLEEP)
    assert observe_watcher(str(world.state)).alive


def test_a_server_that_its_person_kills_ends_although_the_watcher_sits_in_it(world: World) -> None:
    world.environ.pop("TMUXORCH_WATCHER")
    world.new("-n", "a", *SLEEP)
    server = server_of(world)
    wait_for(lambda: "control-mode" in world.tmux("list-clients", "-F", "#{client_flags}"))
    world.tmux("kill-server")
    server.wait(20)
    wait_for(lambda: not observe_watcher(str(world.state)).alive)


def test_many_commands_at_once_start_one_watcher(world: World) -> None:
    world.environ.pop("TMUXORCH_WATCHER")
    made = [
        subprocess.Popen(
            ["tmuxorch", "new", "-q", "-n", f"w{n}", *SLEEP],
            cwd=world.repo,
            env=world.environ,
            stdout=subprocess.DEVNULL,
        )
        for n in range(6)
    ]
    assert [process.wait(60) for process in made] == [0] * 6
    watcher = observe_watcher(str(world.state))
    assert watcher.alive

    def windows() -> list[str]:
        return world.tmux("list-windows", "-t", "=tmuxorch", "-F", "#{window_name}").split()

    wait_for(lambda: sorted(windows()) == ["home", "watch"])
    assert observe_watcher(str(world.state)).alive


def test_ls_says_so_when_nobody_watches(world: World) -> None:
    assert world.run("ls").stderr == ""
    world.new("-n", "a", *SLEEP)
    assert "no watcher runs" in world.run("ls").stderr
    assert world.run("ls", "--json").stderr == ""
    with world.watching():
        assert world.run("ls").stderr == ""


def test_a_persistent_agent_is_started_again_and_given_up_in_the_end(world: World) -> None:
    (world.home / "config.toml").write_text(
        "[restart]\nlimit = 3\nfirst_delay_s = 0.05\nmax_delay_s = 0.1\n"
    )
    made = world.new("-n", "a", "--kind", "persistent", *SLEEP)
    with world.watching():
        for restarts in (1, 2):
            [now] = world.json("ls")
            kill(now)
            wait_for(partial(runs_again, world, restarts))
        [now] = world.json("ls")
        kill(now)
        wait_for(lambda: column(world, made, "state") == "exited" and world.marked_panes() == [])
    assert watch_once(world) == []
    [shown] = world.json("ls")
    assert (shown["state"], shown["status"], shown["restarts"]) == ("exited", "crashed", 2)
    assert column(world, made, "restart_at") is None


def runs_again(world: World, restarts: int) -> bool:
    [now] = world.json("ls")
    return now["restarts"] == restarts and now["process"]["alive"] is True


def test_a_resume_that_fails_clears_the_conversation_and_never_loops(world: World) -> None:
    (world.home / "config.toml").write_text(
        "[restart]\nfirst_delay_s = 0.05\n[agents.talker]\nkind = 'persistent'\ntask = 'none'\n"
        "command = ['sh', '-c', 'echo fresh $0; exec sleep 1000', '{conversation}']\n"
        "resume = ['sh', '-c', 'sleep 0.5; echo No conversation found; exit 1', '{conversation}']\n"
        "resume_failed = 'No conversation found'\n"
    )
    made = world.new("-n", "a", "-a", "talker")
    first = column(world, made, "conversation")
    with world.watching():
        kill(made)
        wait_for(lambda: runs_again(world, 2))
        [now] = world.json("ls")
        assert column(world, made, "conversation") not in (None, first)
        wait_for(lambda: "fresh" in world.screen(now["tmux"]["pane"]))
    whats = [event["what"] for event in world.json("why", "a")]
    assert whats.count("resume failed") == 1
    assert watch_once(world) == []


def test_a_resume_that_fails_at_once_leaves_nothing_running_also_after_a_reload(
    world: World,
) -> None:
    (world.home / "config.toml").write_text(
        "[agents.talker]\ntask = 'none'\n"
        "command = ['sh', '-c', 'exec sleep 1000', '{conversation}']\n"
        "resume = ['sh', '-c', 'echo No conversation found; exit 1', '{conversation}']\n"
        "resume_failed = 'No conversation found'\n"
    )
    made = world.new("-n", "a", "-a", "talker")
    write(made)
    world.run("stop", "a")
    failed = world.run("restart", "a", ok=False)
    assert "No conversation found" in failed.stderr
    for name in ("conversation", "process", "shim"):
        assert column(world, made, name) is None
    [shown] = world.json("ls")
    assert (shown["state"], shown["status"]) == ("exited", "crashed")
    assert shown["ended_at"] is not None
    assert watch_once(world) == []
    assert world.json("ls") == [shown]
    world.run("restart", "a")
    assert listed(world)["a"][0] == "running"
