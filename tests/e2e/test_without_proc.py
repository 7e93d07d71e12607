"""A worker's life where there is no /proc and no pidfd, as on macOS: shim and commands agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import World, wait_for
from tests.e2e.test_watch_death import SLEEP, column, kill, listed, write

HIDDEN = str(Path(__file__).parents[1] / "without_proc")


@pytest.fixture
def mac(world: World) -> World:
    world.environ["PYTHONPATH"] = HIDDEN
    return world


def test_what_the_shim_reports_is_what_the_commands_look_for(mac: World) -> None:
    made = mac.new("-n", "a", *SLEEP)
    assert made["process"]["alive"] is True
    for name, pid in (("process", "pid"), ("shim", "shim_pid")):
        identity = column(mac, made, name)
        assert identity.startswith(f"any/0/{made['process'][pid]}/")
    assert listed(mac)["a"][0] == "running"
    write(made)
    kill(made)
    wait_for(lambda: listed(mac)["a"][0] == "exited")
    mac.run("watch", "--once")
    assert listed(mac) == {"a": ("exited", "crashed")}
    mac.run("restart", "a")
    [again] = mac.json("ls")
    assert again["process"]["alive"] is True
    mac.run("stop", "a")
    assert mac.processes(made["id"]) == []
    mac.run("rm", "-y", "a")
    mac.assert_nothing_left()
