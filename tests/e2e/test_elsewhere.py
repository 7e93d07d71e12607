"""Commands run where the agents' processes cannot be seen: containers, other machines."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World, needs, needs_proc, wait_for
from tests.e2e.test_watch_death import SLEEP, change, column, kill, listed, watch_once, write

pytestmark = [
    needs_proc,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces"),
    needs("unshare"),
]

CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc")
REFUSED = [("rm", "-y", "a"), ("stop", "a"), ("restart", "a"), ("merge", "a", "--rm")]


class Elsewhere:
    """The world as another machine, or this one after a reboot, would see its files."""

    def __init__(self, world: World, *prefix: str) -> None:
        self.world, self.prefix = world, prefix

    @classmethod
    def with_files(cls, world: World, **contents: str) -> Elsewhere:
        """In a mount namespace where these files of the system say something else."""
        mounts = []
        for name, path in (("machine", "/etc/machine-id"), ("boot", BOOT_ID)):
            if name in contents:
                file = world.directory / f"other-{name}"
                file.write_text(contents[name] + "\n")
                mounts.append(f"mount --bind {file} {path}")
        script = " && ".join([*mounts, 'exec "$@"'])
        return cls(world, "unshare", "--mount", "sh", "-c", script, "sh")

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self.prefix, "tmuxorch", *args],
            cwd=self.world.repo,
            env=self.world.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        if done.returncode and done.stderr.startswith(("unshare: ", "mount: ", "sh: ")):
            pytest.skip(f"not possible here: {done.stderr}")
        return done

    def json(self, *args: str) -> Any:
        done = self.run(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def assert_refused(self, *args: str) -> str:
        """One sentence, exit 1."""
        done = self.run(*args)
        assert done.returncode == 1, (done.stdout, done.stderr)
        said = done.stderr.rpartition("tmuxorch: ")[2].removesuffix("\n")
        assert "\n" not in said
        return said


BOOT_ID = "/proc/sys/kernel/random/boot_id"


@pytest.fixture
def container(world: World) -> Elsewhere:
    return Elsewhere(world, *CONTAINER)


@pytest.fixture
def other_machine(world: World) -> Elsewhere:
    if not Path("/etc/machine-id").exists():
        pytest.skip("there is no /etc/machine-id to put another over")
    return Elsewhere.with_files(world, machine=uuid.uuid4().hex, boot=str(uuid.uuid4()))


def assert_untouched(world: World, worker: dict[str, Any]) -> None:
    [shown] = world.json("ls")
    assert (shown["state"], shown["process"]["alive"]) == ("running", True)
    assert shown["process"] == worker["process"]
    assert column(world, worker, "stopped") == 0
    assert world.linked_worktrees() == [worker["worktree"]]
    assert world.marked_panes() == [worker["id"]]
    assert world.json("history") == []


@pytest.mark.parametrize("args", REFUSED)
def test_an_agent_that_a_container_cannot_see_is_not_ended_from_there(
    world: World, container: Elsewhere, args: tuple[str, ...]
) -> None:
    made = world.new("-n", "a", *SLEEP)
    said = container.assert_refused(*args)
    assert "cannot be seen" in said
    assert "nothing was touched" in said
    assert_untouched(world, made)


@pytest.mark.parametrize("args", REFUSED[:2])
def test_an_agent_of_another_machine_is_not_ended_from_here(
    world: World, other_machine: Elsewhere, args: tuple[str, ...]
) -> None:
    made = world.new("-n", "a", *SLEEP)
    assert "another machine" in other_machine.assert_refused(*args)
    assert_untouched(world, made)


def test_what_another_place_cannot_see_is_unknown_there_and_nothing_else(
    world: World, container: Elsewhere, other_machine: Elsewhere
) -> None:
    (world.home / "config.toml").write_text("[cleanup]\ndead = 'always'\n")
    made = world.new("-n", "a", *SLEEP)
    for place in (container, other_machine):
        assert [a["status"] for a in place.json("ls")] == ["unknown"]
        assert {deed["did"] for deed in place.json("watch", "--once")} <= {"seen unknown"}
        assert place.json("sweep", "--apply") == []
    assert_untouched(world, made)


def test_after_a_reboot_of_this_machine_agents_are_lost_and_can_be_removed(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    rebooted = Elsewhere.with_files(world, boot=str(uuid.uuid4()))
    kill(made, "shim_pid")
    wait_for(lambda: world.processes(made["id"]) == [])
    assert [deed["did"] for deed in rebooted.json("watch", "--once")] == ["lost"]
    assert rebooted.run("rm", "-y", "a").returncode == 0
    world.assert_nothing_left()


def test_a_record_from_before_machines_were_noted_is_unknown_after_a_reboot(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    for name in ("process", "shim", "server"):
        old = column(world, made, name).partition("@")[0]
        change(world, made, **{name: old})
    assert listed(world)["a"][0] == "running"
    assert world.json("ls")[0]["process"]["alive"] is True
    rebooted = Elsewhere.with_files(world, boot=str(uuid.uuid4()))
    assert [a["status"] for a in rebooted.json("ls")] == ["unknown"]
    assert "nobody noted which" in rebooted.assert_refused("rm", "-y", "a")


def test_a_start_that_only_the_shim_told_of_counts_as_well(
    world: World, container: Elsewhere
) -> None:
    made = world.new("-n", "a", *SLEEP)
    change(world, made, process=None, shim=None, server=None, state="exited")
    assert "cannot be seen" in container.assert_refused("rm", "-y", "a")
    assert Path(made["worktree"]).is_dir()
    world.run("rm", "-y", "a")
    assert world.processes(made["id"]) == []
    world.assert_nothing_left()


def test_a_worktree_without_record_is_kept_while_its_process_cannot_be_seen(
    world: World, container: Elsewhere
) -> None:
    made = world.new("-n", "a", *SLEEP)
    world.new("-n", "b", *SLEEP)
    with sqlite3.connect(world.state / "tmuxorch.db") as db:
        db.execute("DELETE FROM agents WHERE id = ?", [made["id"]])
    db.close()
    swept = json.loads(container.run("sweep", "--apply", "--json").stdout)
    found = [o for o in swept if o["kind"] == "worktree"]
    assert [(o["path"], o["action"]) for o in found] == [(made["worktree"], "keep")]
    assert "cannot be seen from here" in found[0]["reason"]
    assert (world.state / "run" / made["id"] / "started").exists()
    assert Path(made["worktree"]).is_dir()


def test_what_was_seen_dead_where_it_ran_can_be_removed_from_anywhere(
    world: World, container: Elsewhere
) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    world.run("stop", "a")
    assert container.run("rm", "-y", "a").returncode == 0
    world.assert_nothing_left()
    assert [e["id"] for e in world.json("history")] == [made["id"]]


def test_a_person_may_say_that_the_place_where_it_ran_is_gone(
    world: World, other_machine: Elsewhere
) -> None:
    made = world.new("-n", "a", *SLEEP)
    write(made)
    change(world, made, state="removing", owner=column(world, made, "process"))
    kill(made, "shim_pid")
    wait_for(lambda: world.processes(made["id"]) == [])
    shutil.rmtree(world.state / "run" / made["id"])
    assert "--gone" in other_machine.assert_refused("rm", "-y", "a")
    assert other_machine.run("rm", "-y", "--gone", "a").returncode == 0
    world.assert_nothing_left()
    assert "a person said" in world.run("why", made["id"]).stdout
    # To what can be seen it makes no difference.
    seen = world.new("-n", "b", *SLEEP)
    world.run("rm", "-y", "--gone", "b")
    assert world.processes(seen["id"]) == []
    world.assert_nothing_left()


def test_a_container_starts_no_agent_on_a_tmux_server_outside_of_it(
    world: World, container: Elsewhere
) -> None:
    world.new("-n", "a", *SLEEP)
    said = container.assert_refused("new", "-n", "b", *SLEEP)
    assert "pid namespace" in said
    assert list(listed(world)) == ["a"]
    assert len(world.linked_worktrees()) == 1
    assert len(world.marked_panes()) == 1


@pytest.mark.parametrize("args", [("rm", "-y", "a"), ("stop", "a")])
def test_a_vanished_socket_hides_the_window_but_not_the_processes(
    world: World, args: tuple[str, ...]
) -> None:
    made = world.new("-n", "a", *SLEEP)
    os.rename(world.socket, world.socket + ".away")
    try:
        world.run(*args)
        assert world.processes(made["id"]) == []
    finally:
        os.rename(world.socket + ".away", world.socket)
    wait_for(lambda: world.marked_panes() == [])


def test_a_watcher_on_another_machine_is_known_as_such(
    world: World, other_machine: Elsewhere
) -> None:
    world.new("-n", "a", *SLEEP)
    with world.watching() as watcher:
        said = other_machine.assert_refused("watch")
        assert f"pid {watcher.pid} (it was started on another machine) watches already" in said
        assert "no watcher runs" not in other_machine.run("ls").stderr
        assert watch_once(world) == []


def test_a_start_that_cannot_be_read_is_no_proof_that_nothing_runs(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    started = world.state / "run" / made["id"] / "started"
    started.unlink()
    started.mkdir()
    change(world, made, process=None, shim=None, server=None, state="exited")
    assert "cannot be read" in Elsewhere(world, "env").assert_refused("rm", "-y", "a")
    assert Path(made["worktree"]).is_dir()
    assert world.marked_panes() == [made["id"]]
