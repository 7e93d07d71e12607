"""What becomes of agents that die, in every way they can."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import World, needs_proc, wait_for

SLEEP = ("--", "sleep", "1000")


def watch_once(world: World) -> list[str]:
    return [deed["did"] for deed in world.json("watch", "--once")]


def kill(worker: dict[str, Any], who: str = "pid") -> None:
    os.kill(worker["process"][who], signal.SIGKILL)


def write(worker: dict[str, Any], name: str = "new") -> Path:
    path = Path(worker["worktree"]) / name
    path.write_text("work\n")
    return path


def change(world: World, worker: dict[str, Any], **columns: object) -> None:
    """Edit the agent's row as a crash, a reboot or another program might have left it."""
    with sqlite3.connect(world.state / "tmuxorch.db") as db:
        for name, value in columns.items():
            db.execute(f"UPDATE agents SET {name} = ? WHERE id = ?", [value, worker["id"]])
    db.close()


def column(world: World, worker: dict[str, Any], name: str) -> Any:
    with sqlite3.connect(world.state / "tmuxorch.db") as db:
        [value] = db.execute(f"SELECT {name} FROM agents WHERE id = ?", [worker["id"]]).fetchone()
    db.close()
    return value


def listed(world: World) -> dict[str, tuple[str, str]]:
    return {a["name"]: (a["state"], a["status"]) for a in world.json("ls")}


@pytest.mark.parametrize("args", [(), ("--no-events",)])
def test_a_killed_agent_goes_to_history_with_its_screen_and_cause(
    world: World, args: tuple[str, ...]
) -> None:
    made = world.new("a task", "-n", "a", "--", "sh", "-c", "echo last words; exec sleep 1000")
    with world.watching(*args):
        kill(made)
        [entry] = wait_for(lambda: world.json("history"))
        wait_for(lambda: world.json("ls") == [])
    assert (entry["reason"], entry["exit"]) == ("crashed", {"code": None, "signal": 9})
    assert (entry["task"], entry["last_screen"]) == ("a task", "last words")
    world.assert_nothing_left()


def test_a_worker_that_finished_with_work_is_kept_for_review(world: World) -> None:
    made = world.new("-n", "a", "--", "sh", "-c", "echo done; sleep 0.4; echo hi >f")
    with world.watching():
        wait_for(lambda: listed(world)["a"] == ("exited", "done"))
        wait_for(lambda: world.marked_panes() == [])
        assert world.run("logs", "a").stdout == "done\n"
    assert watch_once(world) == []
    assert (Path(made["worktree"]) / "f").read_text() == "hi\n"
    [shown] = world.json("ls")
    assert shown["exit"] == {"code": 0, "signal": None}
    assert shown["ended_at"] > shown["started_at"]
    world.run("rm", "-y", "a")
    assert [e["reason"] for e in world.json("history")] == ["user"]


@pytest.mark.parametrize(
    ("policy", "left", "salvaged"), [("always", [], True), ("never", ["a"], False)]
)
def test_the_policy_for_the_dead_is_the_persons(
    world: World, policy: str, left: list[str], salvaged: bool
) -> None:
    (world.home / "config.toml").write_text(f"[cleanup]\ndead = '{policy}'\n")
    made = world.new("-n", "a", *SLEEP)
    write(made)
    kill(made)
    watch_once(world)
    assert list(listed(world)) == left
    assert [bool(e["salvage_ref"]) for e in world.json("history")] == ([True] if salvaged else [])


def test_a_clean_worker_that_is_stopped_is_not_cleaned_up(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    world.run("stop", "a")
    assert watch_once(world) == []
    assert listed(world) == {"a": ("exited", "stopped")}


def test_a_window_closed_by_hand_ends_its_agent(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    with world.watching():
        world.tmux("kill-window", "-t", made["tmux"]["window"])
        [entry] = wait_for(lambda: world.json("history"))
        wait_for(lambda: world.json("ls") == [])
    assert entry["reason"] == "window_closed"
    world.assert_nothing_left()


def test_beside_a_dead_agent_the_persons_own_pane_stays(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    mine = world.tmux(
        "split-window", "-d", "-t", made["tmux"]["pane"], "-P", "-F", "#{pane_id}", "sleep", "999"
    ).strip()
    kill(made)
    watch_once(world)
    panes = world.tmux("list-panes", "-a", "-F", "#{pane_id}").split()
    assert mine in panes
    assert made["tmux"]["pane"] not in panes


def test_a_pane_that_the_person_gave_to_another_program_is_not_closed(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    pane = made["tmux"]["pane"]
    world.tmux("respawn-pane", "-k", "-t", pane, "sleep", "998")
    wait_for(lambda: not psutil.pid_exists(made["process"]["pid"]))
    watch_once(world)
    assert listed(world) == {"a": ("exited", "crashed")}
    assert pane in world.tmux("list-panes", "-a", "-F", "#{pane_id}").split()


def test_a_window_that_is_renamed_and_moved_is_still_the_agents(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    world.tmux("new-session", "-d", "-s", "my own", "-x", "80", "-y", "24", "sleep", "997")
    world.tmux("rename-window", "-t", made["tmux"]["window"], "something else")
    world.tmux("join-pane", "-d", "-s", made["tmux"]["pane"], "-t", "=my own:")
    assert watch_once(world) == []
    [shown] = world.json("ls")
    assert (shown["state"], shown["tmux"]["session"]) == ("running", "my own")
    assert shown["tmux"]["window"] != made["tmux"]["window"]


def test_a_dead_shim_and_a_living_agent_are_a_stray_that_only_removal_ends(world: World) -> None:
    made = world.new("-n", "a", "--", "sh", "-c", "trap '' HUP TERM; while :; do sleep 0.1; done")
    wait_for(lambda: "sleep" in " ".join(c.name() for c in children(made)))
    kill(made, "shim_pid")
    wait_for(lambda: world.marked_panes() == [])
    assert watch_once(world)[-1] == "seen stray"
    [shown] = world.json("ls")
    assert (shown["status"], shown["process"]["alive"]) == ("stray", True)
    assert watch_once(world) == []
    world.run("rm", "-y", "a")
    world.assert_nothing_left()


def children(worker: dict[str, Any]) -> list[psutil.Process]:
    return psutil.Process(worker["process"]["pid"]).children()


def test_when_the_shim_is_killed_the_agents_death_is_seen_too(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    with world.watching():
        kill(made, "shim_pid")
        [entry] = wait_for(lambda: world.json("history"))
    assert entry["reason"] == "window_closed"


def test_a_pid_that_belongs_to_another_process_now_is_a_dead_agent(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    boot, namespace, pid, ticks, inode = column(world, made, "process").split("/")
    change(world, made, process=f"{boot}/{namespace}/{pid}/{int(ticks) - 1}/{inode}")
    assert "ended" in watch_once(world)
    assert "belongs to another process now" in world.run("why", "a").stdout


@needs_proc
def test_after_a_reboot_all_are_lost_once_and_pids_are_not_compared(world: World) -> None:
    made = [world.new("-n", name, *SLEEP) for name in ("a", "b")]
    for worker in made:
        for name in ("process", "shim", "server"):
            there = column(world, worker, name)
            change(world, worker, **{name: "an-earlier-boot/" + there.partition("/")[2]})
    assert watch_once(world) == ["lost", "lost"]
    assert watch_once(world) == []
    assert set(listed(world).values()) == {("lost", "lost")}
    assert all(Path(worker["worktree"]).is_dir() for worker in made)
    assert world.json("history") == []


def test_lost_agents_come_back_with_one_command(world: World) -> None:
    made = [world.new("-n", name, *SLEEP) for name in ("a", "b")]
    write(made[0])
    server = int(world.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: not any(psutil.pid_exists(w["process"]["pid"]) for w in made))
    assert watch_once(world) == ["lost", "lost"]
    world.run("restart", "--lost")
    assert {state for state, _ in listed(world).values()} == {"running"}
    assert (Path(made[0]["worktree"]) / "new").exists()
    assert all(a["process"]["alive"] for a in world.json("ls"))


@pytest.mark.parametrize(("age_s", "left"), [(60, ["a"]), (121, [])])
def test_a_worker_without_pid_is_kept_for_two_minutes_and_then_cleaned_up(
    world: World, age_s: float, left: list[str]
) -> None:
    made = world.new("-n", "a", *SLEEP)
    kill(made, "shim_pid")
    wait_for(lambda: not psutil.pid_exists(made["process"]["pid"]))
    (world.state / "run" / made["id"] / "started").unlink()
    (world.state / "run" / made["id"] / "exit").unlink(missing_ok=True)
    change(world, made, process=None, shim=None, started_at=time.time() - age_s)
    watch_once(world)
    assert list(listed(world)) == left
    assert [e["reason"] for e in world.json("history")] == ([] if left else ["never_started"])


def test_a_start_that_was_not_written_down_is_adopted(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    change(world, made, process=None, shim=None, status="starting", started_at=made_at(made) - 1)
    assert watch_once(world) == ["adopted"]
    [shown] = world.json("ls")
    assert shown["process"]["pid"] == made["process"]["pid"]


def made_at(worker: dict[str, Any]) -> float:
    return datetime.fromisoformat(worker["created_at"]).timestamp()


def test_an_agent_being_removed_is_not_also_reported_as_crashed(world: World) -> None:
    with world.watching():
        for _ in range(5):
            world.new("-n", "a", *SLEEP)
            world.run("rm", "-y", "a")
    assert [e["reason"] for e in world.json("history")] == ["user"] * 5
    assert "ended" not in {e["what"] for e in world.json("events", "-n", "1000")}


def test_cleanups_at_the_same_time_write_one_history_row(world: World) -> None:
    made = [world.new("-n", f"w{n}", *SLEEP) for n in range(3)]
    for worker in made:
        kill(worker)
    passes = [
        subprocess.Popen(["tmuxorch", *args], cwd=world.repo, env=world.environ, stderr=-3)
        for args in (["watch", "--once"], ["watch", "--once"], ["rm", "-y", "w0", "w1", "w2"])
    ]
    for one in passes:
        one.wait(60)
    watch_once(world)
    assert sorted(e["id"] for e in world.json("history")) == sorted(w["id"] for w in made)
    world.assert_nothing_left()


def test_why_tells_what_was_seen_and_what_was_done(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    kill(made)
    watch_once(world)
    told = world.run("why", "a").stdout
    for words in ("started: pid", "ended: its process has ended", "ended with SIGKILL"):
        assert words in told
    assert "nothing is at stake" in told
    objects = world.json("why", made["id"])
    assert [o["what"] for o in objects][:2] == ["creating", "started"]
    assert {o["id"] for o in objects} == {made["id"]}
    lines = world.json("events", "-n", "2")
    assert [e["seq"] for e in lines] == sorted(e["seq"] for e in lines)
    assert len(json.dumps(lines)) > 2
