"""One agent with something odd about it: every surface goes on, and all others are watched."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.conftest import World, wait_for
from tests.e2e.test_watch_death import SLEEP, change, column, kill, listed, watch_once, write


def make_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path)


def fill(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    return write


ODD: dict[str, Callable[[Path], None]] = {
    "a directory": make_directory,
    "a pipe": make_pipe,
    "a link to itself": make_loop,
    "no number": fill(b"code zero\nat noon\n"),
    "binary": fill(bytes(range(256)) * 9),
    "too long": fill(b"code 0\n" * 100_000),
    "another format": fill(b'{"code": [0]}'),
    "a number too large": fill(b"code 1" + b"0" * 5000 + b"\nat 1\n"),
}


@pytest.mark.parametrize("what", ["exit", "started"])
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_word_of_one_shim_hides_no_other_agent(world: World, odd: str, what: str) -> None:
    one = world.new("-n", "odd", *SLEEP)
    two = world.new("-n", "two", *SLEEP)
    world.new("-n", "three", *SLEEP)
    kill(one)
    exit_file = world.state / "run" / one["id"] / "exit"
    wait_for(exit_file.exists)
    ODD[odd](world.state / "run" / one["id"] / what)
    assert set(listed(world)) == {"odd", "two", "three"}
    world.run("show", "odd")
    with world.watching():
        kill(two)
        wait_for(lambda: "two" not in listed(world), what="the other's death to be recorded")
        wait_for(lambda: listed(world).get("odd", ("gone",))[0] != "running")
    assert listed(world)["three"][0] == "running"
    if "odd" in listed(world):
        world.run("rm", "-y", "odd")
    assert world.run("doctor", ok=False).returncode in (0, 1)
    assert world.run("sweep", ok=False).returncode in (0, 1)
    assert not list(world.state.glob("logs/*"))


@pytest.mark.parametrize("odd", ["a directory", "no number", "a pipe"])
def test_an_end_that_cannot_be_read_is_no_crash_and_removes_nothing(world: World, odd: str) -> None:
    made = world.new("-n", "a", *SLEEP)
    kill(made)
    exit_file = world.state / "run" / made["id"] / "exit"
    wait_for(exit_file.exists)
    ODD[odd](exit_file)
    assert listed(world) == {"a": ("exited", "ended")}
    assert "ended" in watch_once(world)
    assert watch_once(world) == []
    assert listed(world) == {"a": ("exited", "ended")}
    assert str(exit_file) in world.run("why", "a").stdout
    assert Path(made["worktree"]).is_dir()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("process", "garbage"),
        ("shim", "a/b/c/d/e"),
        ("server", "1/2/3"),
        ("state", "dancing"),
        ("status", "tired"),
        ("kind", ""),
        ("reason", "none at all"),
        ("deaths", "[1,"),
        ("command", "5"),
        ("window", None),
    ],
)
def test_a_row_that_cannot_be_read_is_unknown_and_hides_no_other(
    world: World, name: str, value: object
) -> None:
    odd = world.new("-n", "odd", *SLEEP)
    two = world.new("-n", "two", *SLEEP)
    kill(two)
    change(world, odd, **{name: value})
    assert listed(world)["odd"] == ("quarantined", "unknown")
    assert watch_once(world)[-1] == "removed"
    assert listed(world) == {"odd": ("quarantined", "unknown")}
    refused = world.run("rm", "-y", "odd", ok=False)
    assert refused.returncode == 1
    assert "cannot be read" in refused.stderr
    assert psutil.pid_exists(odd["process"]["pid"])
    doctor = world.run("doctor", ok=False)
    assert (doctor.returncode, "its record cannot be read" in doctor.stdout) == (1, True)


def test_a_watcher_whose_store_fails_for_a_while_goes_on_afterwards(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    db = sqlite3.connect(world.state / "tmuxorch.db", isolation_level=None)
    watcher = subprocess.Popen(
        ["tmuxorch", "watch"],
        cwd="/",
        env=world.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert watcher.stdout is not None
    try:
        assert "watching" in watcher.stdout.readline()
        db.execute("ALTER TABLE agents RENAME TO elsewhere")
        assert "cannot go on" in watcher.stdout.readline()
        db.execute("ALTER TABLE elsewhere RENAME TO agents")
        kill(made)
        wait_for(lambda: column(world, made, "state") == "exited")
        assert watcher.poll() is None
    finally:
        watcher.kill()
        watcher.communicate()
        db.close()
    assert not list(world.state.glob("logs/*"))
