"""A failure after every step of making and removing a worker: nothing left, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import World

CREATE_STEPS = ("recorded", "worktree", "setup", "window", "started", "running")
REMOVE_STEPS = (
    "claimed",
    "ended",
    "closed",
    "saved",
    "buried",
    "worktree",
    "branch",
    "files",
)

# Runs the command line with a fault at one checkpoint of its saga.
DRIVER = """
import os, sys
from tmuxorch.cli import main, session

step, fault, *args = sys.argv[1:]

def checkpoint(name):
    if name == step:
        if fault == "SIGKILL":
            os.kill(os.getpid(), 9)
        raise {"OSError": OSError(28, "No space left on device"),
               "interrupt": KeyboardInterrupt()}[fault]

opened = session.open_context
def with_fault(*a, **k):
    context = opened(*a, **k)
    context.checkpoint = checkpoint
    return context
session.open_context = with_fault
sys.argv = ["tmuxorch", *args]
main.main()
"""


def run_with_fault(
    world: World, step: str, fault: str, *args: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", DRIVER, step, fault, *args],
        cwd=world.repo,
        env=world.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )


def do_work(worktree: str) -> None:
    (Path(worktree) / "README").write_text("changed\n")
    (Path(worktree) / "new file").write_text("untracked\n")
    (Path(worktree) / "secret.log").write_text("ignored\n")


def saved_files(world: World, entry: dict[str, str]) -> dict[str, str]:
    files = world.state / "archive" / entry["id"] / "files"
    return {name: (files / name).read_text() for name in ("README", "new file")}


@pytest.mark.parametrize("fault", ["OSError", "interrupt"])
@pytest.mark.parametrize("step", CREATE_STEPS)
def test_a_creation_that_fails_anywhere_leaves_nothing(world: World, step: str, fault: str) -> None:
    done = run_with_fault(
        world, f"create:{step}", fault, "new", "-n", "w", "--", "sh", "-c", "sleep 100 & sleep 100"
    )
    assert done.returncode == (1 if fault == "OSError" else 130), done.stderr
    world.assert_nothing_left()
    assert world.json("ls") == []
    (entry,) = world.json("history")
    assert entry["reason"] == "create_failed"
    world.new("-n", "w", "--", "sleep", "100")


@pytest.mark.parametrize("step", CREATE_STEPS)
def test_a_creation_killed_anywhere_can_be_removed(world: World, step: str) -> None:
    done = run_with_fault(
        world, f"create:{step}", "SIGKILL", "new", "-n", "w", "--", "sh", "-c", "sleep 100"
    )
    assert done.returncode == -signal.SIGKILL
    world.run("rm", "-y", "w")
    world.assert_nothing_left()
    assert [e["name"] for e in world.json("history")] == ["w"]


def test_a_failed_creation_never_deletes_a_branch_that_was_there(world: World) -> None:
    world.git("branch", "mine")
    done = run_with_fault(
        world, "create:window", "OSError", "new", "-n", "w", "--branch", "mine", "--", "sleep", "9"
    )
    assert done.returncode == 1
    assert "mine" in world.branches()
    assert world.linked_worktrees() == []


def test_work_that_an_agent_did_before_its_creation_failed_is_saved(world: World) -> None:
    done = world.run(
        *("new", "-n", "w", "--", "sh", "-c", "echo changed > README; echo u > 'new file'; exit 3"),
        ok=False,
    )
    assert done.returncode == 1
    (entry,) = world.json("history")
    assert saved_files(world, entry) == {"README": "changed\n", "new file": "u\n"}
    assert entry["exit"] == {"code": 3, "signal": None}
    world.assert_nothing_left()


@pytest.mark.parametrize("fault", ["SIGKILL", "OSError", "interrupt"])
@pytest.mark.parametrize("step", REMOVE_STEPS)
def test_a_removal_cut_off_anywhere_is_carried_on_with_one_history_row(
    world: World, step: str, fault: str
) -> None:
    made = world.new("-n", "w", "--", "sh", "-c", "sleep 100 & sleep 100")
    do_work(made["worktree"])
    # Twice in a row, then for good; what is buried already is not buried again.
    for cut in (step, "worktree" if step == "buried" else step):
        done = run_with_fault(world, f"remove:{cut}", fault, "rm", "-y", "w")
        assert done.returncode != 0
        assert [a["state"] for a in world.json("ls")] == ["removing"]
    world.run("rm", "-y", "w")
    world.assert_nothing_left()
    (entry,) = world.json("history")
    assert entry["id"] == made["id"]
    assert saved_files(world, entry) == {"README": "changed\n", "new file": "untracked\n"}
    (save,) = (world.state / "archive").iterdir()
    assert (save / "files/secret.log").exists()
    assert save.stat().st_mode & 0o777 == 0o700


def test_five_removals_at_once_give_one_history_row(world: World) -> None:
    made = world.new("-n", "w", "--", "sleep", "100")
    do_work(made["worktree"])
    commands = [
        subprocess.Popen(
            ["tmuxorch", "rm", "-y", "w"],
            cwd=world.repo,
            env=world.environ,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for _ in range(5)
    ]
    said = [command.communicate(timeout=60)[1].decode() for command in commands]
    statuses = [command.returncode for command in commands]
    assert 0 in statuses, said
    assert set(statuses) <= {0, 1}, said
    assert len(world.json("history")) == 1
    world.assert_nothing_left()


def test_what_cannot_be_saved_is_not_deleted(world: World) -> None:
    (world.home / "config.toml").write_text("[salvage]\nignored_cap_mb = 1\n")
    made = world.new("-n", "w", "--", "sleep", "100")
    big = Path(made["worktree"]) / "big.log"
    big.write_bytes(os.urandom(2_000_000))
    done = world.run("rm", "-y", "w", ok=False)
    assert done.returncode == 1
    assert "nothing was deleted" in done.stderr
    assert big.stat().st_size == 2_000_000
    (agent,) = world.json("ls")
    assert (agent["state"], agent["status"]) == ("quarantined", "quarantined")
    assert world.json("history") == []
    big.unlink()
    world.run("rm", "-y", "w")
    world.assert_nothing_left()
