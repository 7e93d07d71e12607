"""What never ends or never begins is not waited for: FIFOs, devices, loops, endless files."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from pathlib import Path

import pytest

from tests.conftest import World, wait_for

SLEEP = ("--", "sleep", "1000")


def refused(world: World, *args: str, **kwargs: object) -> str:
    done = world.run(*args, ok=False, **kwargs)  # type: ignore[arg-type]
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("make", [os.mkfifo, lambda p: os.symlink("/dev/zero", p)])
def test_settings_are_read_from_regular_files_only(world: World, make: object) -> None:
    assert callable(make)
    for path in (world.home / "config.toml", world.repo / ".tmuxorch.toml"):
        make(path)
        assert "expected a file; got something else" in refused(world, "new", "-n", "a", *SLEEP)
        path.unlink()
    world.assert_nothing_left()


def test_a_dot_git_that_never_ends_is_not_waited_for(world: World) -> None:
    place = world.directory / "place"
    place.mkdir()
    os.mkfifo(place / ".git")
    assert "no git repository" in refused(world, "new", "-n", "a", *SLEEP, cwd=place)
    (place / ".git").unlink()
    os.symlink("/dev/zero", place / ".git")
    assert "no git repository" in refused(world, "new", "-n", "a", *SLEEP, cwd=place)
    (place / ".git").unlink()
    (place / ".git").write_bytes(b"gitdir: " + b"x" * 1_000_000)
    assert "is broken" in refused(world, "new", "-n", "a", *SLEEP, cwd=place)


def test_a_fifo_in_the_run_directory_hangs_nobody(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    run = world.state / "run" / made["id"]
    for name in ("screen", "task"):
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)
    world.run("ls")
    world.run("logs", "a")
    world.run("stop", "a")
    world.run("logs", "a", ok=False)
    world.run("rm", "-y", "a")


def test_a_fifo_among_git_logs_hangs_nobody(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    own = Path(world.git("rev-parse", "--absolute-git-dir", cwd=made["worktree"]).strip())
    os.mkfifo(own / "logs" / "x")
    os.mkfifo(own / "X_HEAD")
    Path(made["worktree"], "work").write_text("x")
    world.run("rm", "-y", "a")


def test_a_lock_that_is_a_fifo_does_not_stop_ls(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    (world.state / "watch.lock").unlink(missing_ok=True)
    os.mkfifo(world.state / "watch.lock")
    assert "a" in world.run("ls").stdout


def test_a_task_may_come_out_of_a_pipe(world: World) -> None:
    script = 'tmuxorch new -n a --json -f <(sleep 0.2; echo "from a pipe") -- sleep 1000'
    subprocess.run(["bash", "-c", script], cwd=world.repo, env=world.environ, check=True)
    assert world.json("show", "a")["task"] == "from a pipe"
    fifo = world.directory / "fifo"
    os.mkfifo(fifo)
    writer = subprocess.Popen(["sh", "-c", f"echo slow > {shlex.quote(str(fifo))}"])
    world.new("-n", "b", "-f", str(fifo), *SLEEP)
    writer.wait()
    assert world.json("show", "b")["task"] == "slow"


@pytest.mark.parametrize("source", ["/dev/zero", "-", "a file", "words", "send"])
def test_more_than_a_megabyte_is_refused(world: World, source: str) -> None:
    big = world.directory / "big"
    big.write_bytes(b"x" * 10_000_000)
    world.new("-n", "w", "--", "cat")
    match source:
        case "-":
            said = refused(world, "new", "-f", "-", *SLEEP, stdin=big.read_bytes())
        case "send":
            said = refused(world, "send", "w", stdin=big.read_bytes())
        case "words":
            # One argument has 128 kB at the most, all together 2 MB.
            said = refused(world, "new", *["x" * 100_000] * 11, *SLEEP)
        case _:
            path = str(big) if source == "a file" else source
            said = refused(world, "new", "-f", path, *SLEEP)
    assert "1 MB" in said
    assert len(world.json("ls")) == 1


def test_what_cannot_be_copied_is_said_and_loops_end(world: World) -> None:
    top = world.repo / "cache"
    (top / "deep").mkdir(parents=True)
    (top / "deep" / "file").write_text("x")
    for name in ("one", "two", "three"):
        (top / "deep" / name).symlink_to("../deep")
        (top / name).symlink_to(".")
    os.mkfifo(top / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(top)
        listening.bind("socket")
        os.chdir("/")
        (world.home / "config.toml").write_text(
            "[setup]\ncopy = ['cache', '**/file', '*/*/*/*/file', 'cache/**/**/**']\n"
        )
        done = world.run("new", "-n", "a", *SLEEP)
    assert "cache/fifo was not copied: it is a FIFO" in done.stderr
    assert "cache/socket was not copied: it is a socket" in done.stderr
    copied = Path(world.json("show", "a")["worktree"]) / "cache"
    assert (copied / "deep" / "file").read_text() == "x"
    assert os.readlink(copied / "deep" / "one") == "../deep"
    assert os.readlink(copied / "two") == "."
    assert sorted(os.listdir(copied)) == ["deep", "one", "three", "two"]


def test_a_directory_of_a_thousand_levels_is_copied(world: World) -> None:
    deep = "/".join(["d"] * 1200)
    subprocess.run(["mkdir", "-p", f"{world.repo}/deep/{deep}"], check=True)
    (world.repo / "deep" / deep / "f").write_text("x")
    (world.home / "config.toml").write_text("[setup]\ncopy = ['deep', '**/f']\n")
    made = world.new("-n", "a", *SLEEP)
    assert (Path(made["worktree"]) / "deep" / deep / "f").read_text() == "x"
    world.run("stop", "a")
    wait_for(lambda: not world.processes(made["id"]))
    subprocess.run(["rm", "-rf", made["worktree"], str(world.repo / "deep")], check=True)
