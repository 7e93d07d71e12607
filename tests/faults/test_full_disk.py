"""A state directory on a disk without room: the watcher goes on looking."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.conftest import World, wait_for


@pytest.fixture
def small_state(world: World) -> Iterator[World]:
    """The world with its state on a disk of its own, with room for little."""
    world.state.mkdir(mode=0o700)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", world.state],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.decode().strip()}")
    yield world
    subprocess.run(["umount", "-l", world.state], check=False)


def fill(world: World) -> None:
    with (world.state / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


def test_the_watcher_outlives_a_full_disk_and_records_when_there_is_room(
    small_state: World,
) -> None:
    world = small_state
    made = world.new("-n", "w", "--", "sleep", "100")
    log = world.directory / "watch.log"
    with world.watching() as watcher:
        fill(world)
        os.kill(made["process"]["pid"], 9)
        wait_for(lambda: "cannot go on" in log.read_text(), what="the trouble being told")
        seen = (world.state / "watch.lock").stat().st_mtime_ns
        wait_for(
            lambda: (world.state / "watch.lock").stat().st_mtime_ns > seen + 3 * 10**9,
            what="three more passes",
        )
        assert watcher.poll() is None
        assert log.read_text().count("cannot go on") == 1
        (world.state / "filler").unlink()
        wait_for(lambda: "goes on" in log.read_text(), what="the end of the trouble")
        wait_for(lambda: not any(a["state"] == "running" for a in world.json("ls")))
    assert any(event["what"] == "goes on" for event in world.json("events"))
