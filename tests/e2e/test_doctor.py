"""Is everything well, and mending what is not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import World, wait_for
from tests.e2e.test_watch_death import SLEEP, kill, listed, watch_once, write
from tmuxorch.adapters.store import database
from tmuxorch.errors import StoreUnusable
from tmuxorch.service.care import repair


def examine(world: World, *args: str) -> tuple[int, dict[str, Any]]:
    done = world.run("doctor", "--json", *args, ok=False)
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if found["ok"] else 1)
    return done.returncode, {c["name"]: c for c in (*found["checks"], *found["agents"])}


def test_a_machine_without_agents_is_well(world: World) -> None:
    status, checks = examine(world)
    assert status == 0, checks
    assert checks["tmux"]["detail"].startswith("tmux ")
    assert checks["git"]["detail"].startswith("git version ")
    assert checks["watcher"]["detail"] == "none runs"


def test_with_agents_a_missing_watcher_is_not_well(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    status, checks = examine(world)
    assert (status, checks["watcher"]["ok"]) == (1, False)
    with world.watching():
        status, checks = examine(world)
    assert status == 0, checks
    assert "last pass" in checks["watcher"]["detail"]
    assert "process alive" in checks["a"]["detail"]


def test_libtmux_and_gitpython_are_asked_what_they_see(world: World) -> None:
    for name in ("a", "b"):
        world.new("-n", name, *SLEEP)
    # Neither the locale, nor what a hook exports, nor files that lie around mislead them.
    for module in ("libtmux", "git", "tmuxorch", "json"):
        (world.repo / f"{module}.py").write_text("raise SystemExit('not the library')\n")
    world.environ.update(LC_ALL="C", GIT_DIR=str(world.directory / "nowhere"), TMUX="/nowhere,1,0")
    _, checks = examine(world)
    assert checks["libtmux"]["detail"] == "sees the same 2 windows"
    assert checks["GitPython"]["detail"] == "sees the same 2 branches"


def test_a_second_opinion_that_differs_is_told(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    real = shutil.which("tmux")
    liar = world.directory / "liar" / "tmux"
    liar.parent.mkdir()
    # Only libtmux parts fields by this character.
    window = made["tmux"]["window"]
    lie = (
        f'case $* in *list-panes*␞*) {real} "$@" | sed s/{window}/@99/;; *) exec {real} "$@";; esac'
    )
    liar.write_text(f"#!/bin/sh\n{lie}\n")
    liar.chmod(0o755)
    world.environ["PATH"] = f"{liar.parent}:{world.environ['PATH']}"
    status, checks = examine(world)
    assert (status, checks["libtmux"]["ok"]) == (1, False)
    assert f"is {window}, process" in checks["libtmux"]["detail"]
    assert "@99, process" in checks["libtmux"]["detail"]


def test_without_a_second_opinion_the_reason_is_told_and_nothing_follows(world: World) -> None:
    repo = world.directory / "sha256"
    world.git("init", "-q", "--object-format=sha256", str(repo))
    world.git("commit", "-q", "--allow-empty", "-m", "first", cwd=repo)
    world.run("new", "-n", "a", "--no-wait", *SLEEP, cwd=repo)
    _, checks = examine(world)
    assert checks["GitPython"]["ok"]
    assert checks["GitPython"]["detail"].startswith("no second opinion: ")


def test_a_record_that_is_not_true_is_named_with_what_is_to_be_done(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    kill(made)
    _, checks = examine(world)
    assert not checks["a"]["ok"]
    assert checks["a"]["detail"].endswith("to do: end")
    watch_once(world)
    _, checks = examine(world)
    assert checks["a"]["ok"]


def test_a_worktree_deleted_by_hand_is_not_well(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    os.rename(made["worktree"], made["worktree"] + ".moved")
    _, checks = examine(world)
    assert "worktree gone" in checks["a"]["detail"]
    assert not checks["a"]["ok"]


@pytest.mark.parametrize("damage", ["lost", "empty", "garbage"])
def test_a_lost_store_is_rebuilt_from_marks_and_nothing_is_deleted(
    world: World, damage: str
) -> None:
    runs = world.new("a task\nof two lines", "-n", "runs", *SLEEP)
    ended = world.new("-n", "ended", *SLEEP)
    work = write(ended)
    world.run("stop", "ended")
    ours = {name: (world.state / name) for name in ("tmuxorch.db", "tmuxorch.db-wal")}
    for path in ours.values():
        if path.exists():
            path.unlink()
    if damage == "empty":
        (world.state / "tmuxorch.db").touch()
    elif damage == "garbage":
        (world.state / "tmuxorch.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 8192)
    refused = world.run("ls", ok=False)
    assert refused.returncode == 1
    assert world.run("sweep", "--apply", ok=False).returncode == 1
    status, checks = examine(world)
    assert status == 1
    assert not checks["store_unusable"]["ok"]
    examine(world, "--repair")
    assert {name: state for name, (state, _) in listed(world).items()} == {
        "runs": "running",
        "ended": "exited",
    }
    [shown] = [a for a in world.json("ls") if a["name"] == "runs"]
    assert (shown["id"], shown["task"]) == (runs["id"], "a task\nof two lines")
    assert shown["process"] == runs["process"]
    assert shown["tmux"] == runs["tmux"]
    assert watch_once(world) == []
    assert work.read_text() == "work\n"
    world.run("send", "runs", "still there")
    world.run("rm", "-y", "runs", "ended")
    assert {e["name"] for e in world.json("history")} == {"runs", "ended"}
    assert world.linked_worktrees() == []


def test_repairing_what_is_whole_changes_nothing(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    before = world.json("ls")
    examine(world, "--repair")
    assert world.json("ls") == before
    assert list(world.state.glob("damaged-*")) == []


def test_doctor_looks_without_waiting_for_a_stopped_tmux(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    server = int(world.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        _, checks = examine(world)
    finally:
        os.kill(server, signal.SIGCONT)
    assert "window unknown" in checks["a"]["detail"]
    assert Path(made["worktree"]).is_dir()
    wait_for(lambda: world.marked_panes() == [made["id"]])


def test_a_newer_store_is_refused_and_left_as_it_is(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    with sqlite3.connect(world.state / "tmuxorch.db") as db:
        db.execute("CREATE TABLE of_tomorrow (x)")
        db.execute("PRAGMA user_version = 999")
    db.close()
    before = (world.state / "tmuxorch.db").read_bytes()
    for args in (("doctor", "--repair"), ("sweep", "--apply"), ("ls",)):
        done = world.run(*args, ok=False)
        assert done.returncode == 1
        assert "newer tmuxorch" in done.stderr
        assert done.stderr.count("\n") == 1
    assert (world.state / "tmuxorch.db").read_bytes() == before
    assert list(world.state.glob("damaged-*")) == []


def test_a_store_that_another_holds_is_not_set_aside(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.new("-n", "a", *SLEEP)
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    with sqlite3.connect(world.state / "tmuxorch.db", isolation_level=None) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        db.execute(f"PRAGMA user_version = {database.SCHEMA_VERSION}")
        with pytest.raises(StoreUnusable, match="locked"):
            repair.set_damaged_store_aside(str(world.state))
    db.close()
    assert list(world.state.glob("damaged-*")) == []
    assert [agent["name"] for agent in world.json("ls")] == ["a"]


def test_the_last_screens_of_removed_workers_are_not_read_to_look_around(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    world.run("rm", "-y", "a")
    with sqlite3.connect(world.state / "tmuxorch.db") as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(history)")]
        kept = ", ".join(c for c in columns if c not in ("seq", "id", "last_screen"))
        db.execute(
            "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
            f" INSERT INTO history (id, last_screen, {kept})"
            f" SELECT printf('%012x', i), hex(zeroblob(25000)), {kept} FROM n, history"
        )
    db.close()
    for args in (("sweep",), ("doctor",)):
        # By a small process: what its parent held counts for a child.
        code = (
            "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
            "capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        measured = subprocess.run(
            [sys.executable, "-c", code, "tmuxorch", *args],
            cwd=world.repo,
            env=world.environ,
            capture_output=True,
            check=True,
        )
        assert int(measured.stdout) < 60_000 * (1 if sys.platform == "linux" else 1024)


def test_a_living_agent_is_recorded_as_such_though_all_words_of_it_are_lost(world: World) -> None:
    made = world.new("-n", "a", "--", "sleep", "1000")
    shutil.rmtree(world.state)
    said = world.run("doctor", "--repair", ok=False)
    assert "a is recorded again, as running" in said.stdout + said.stderr
    [again] = world.json("ls")
    assert (again["state"], again["process"]["pid"]) == ("running", made["process"]["pid"])
    world.run("watch", "--once")
    assert psutil.pid_exists(made["process"]["pid"])
    assert world.marked_panes() == [made["id"]]


def test_a_living_agent_of_another_store_is_not_taken_over(world: World) -> None:
    made = world.new("-n", "a", "--", "sleep", "1000")
    other = {"TMUXORCH_STATE_DIR": str(world.directory / "other")}
    world.json("ls", env=other)
    world.run("doctor", "--repair", ok=False, env=other)
    assert world.json("ls", env=other) == []
    assert world.json("ls")[0]["id"] == made["id"]
