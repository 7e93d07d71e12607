"""git and the commands that run it are killed at random moments; the next command ends the job.

`TMUXORCH_KILLS` (how many) and `TMUXORCH_KILL_SEED` make longer runs by hand.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import World, wait_for

KILLS = int(os.environ.get("TMUXORCH_KILLS", "24"))
SEED = int(os.environ.get("TMUXORCH_KILL_SEED", "1"))
PARTS = 4

# First on the PATH. At the n-th call it ends the command that called it, or git with all its
# children, or both, some moments after git's start; `before` and `after` are exact.
WRAPPER = """#!/bin/sh
n=$(($(cat "$KILL_COUNT" 2>/dev/null || echo 0) + 1))
echo $n > "$KILL_COUNT"
end_command() {
    grep -qF "TMUXORCH_STATE_DIR=$TMUXORCH_STATE_DIR" /proc/$PPID/environ && kill -9 $PPID
}
if [ "$n" = "$KILL_AT" ]; then
    case $KILL_HOW in
    before) end_command; exit 1 ;;
    after) REAL_GIT "$@"; end_command; exit 1 ;;
    command) (sleep $KILL_S; end_command) >/dev/null 2>&1 & ;;
    git) (sleep $KILL_S; kill -9 0) >/dev/null 2>&1 & ;;
    both | power) (sleep $KILL_S; end_command; kill -9 0) >/dev/null 2>&1 & ;;
    esac
fi
exec REAL_GIT "$@"
"""
NEW = ("--no-wait",)
HOWS = ("before", "after", "command", "git", "both", "power")


class Killer:
    """A world in which git is killed, and the dice."""

    def __init__(self, world: World, dice: random.Random) -> None:
        self.world, self.dice = world, dice
        self.plain_path = world.environ["PATH"]
        real = shutil.which("git", path=self.plain_path)
        assert real is not None
        wrapper = world.directory / "bin" / "git"
        wrapper.parent.mkdir()
        wrapper.write_text(WRAPPER.replace("REAL_GIT", real))
        wrapper.chmod(0o755)
        self.count = world.directory / "count"
        self.calls: dict[str, int] = {}
        self.learn()

    def run(self, *args: str) -> str:
        """Run it and kill at a random moment; what was done, for the message of a failure."""
        how, at = self.dice.choice(HOWS), self.dice.randint(1, self.calls[args[0]])
        delay_s = self.dice.uniform(0, 0.015)
        begun_ns = time.time_ns() - 20_000_000
        done = self.call(*args, how=how, at=at, delay_s=delay_s)
        if how == "power":
            self.cut_power(begun_ns)
        told = f"{args}: {how} at call {at} after {delay_s:.4f} s: {done}\n"
        print(told)
        return told

    def learn(self) -> None:
        """How often each command calls git when nobody is killed."""
        made, removed = ("new", *NEW, "-n", "whole", "--", "sleep", "100"), ("rm", "-y", "whole")
        for args in (made, removed, ("restore", "whole"), removed):
            assert self.call(*args, how="never", at=0, delay_s=0).returncode == 0
            self.calls[args[0]] = int(self.count.read_text())
            for agent in self.world.json("ls"):
                Path(agent["worktree"], "new.txt").write_text("precious\n")

    def call(
        self, *args: str, how: str, at: int, delay_s: float
    ) -> subprocess.CompletedProcess[str]:
        self.count.unlink(missing_ok=True)
        env = {
            "PATH": f"{self.world.directory}/bin{os.pathsep}{self.plain_path}",
            "KILL_COUNT": str(self.count),
            "KILL_AT": str(at),
            "KILL_HOW": how,
            "KILL_S": f"{delay_s:.4f}",
        }
        return self.world.run(*args, env=env, ok=False)

    def cut_power(self, begun_ns: int) -> None:
        """Empty some of the files that were being written, as after a power cut."""
        common = self.world.repo / ".git"
        for top in (common / "worktrees", common / "refs" / "heads" / "tmuxorch"):
            for directory, _, names in os.walk(top):
                for path in (Path(directory, name) for name in names):
                    status = path.lstat()
                    young = stat.S_ISREG(status.st_mode) and status.st_mtime_ns >= begun_ns
                    if young and "logs" not in path.parts and self.dice.random() < 0.5:
                        path.write_bytes(b"")


def assert_git_works(world: World, told: str) -> None:
    """As the person uses it, without a word of complaint."""
    for words in ("worktree list", "branch", "fsck --no-dangling", "gc -q", "pack-refs --all"):
        done = subprocess.run(
            ["git", *words.split()],
            cwd=world.repo,
            env=world.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"git {words}: {done.stderr}\n{told}"
        assert "error" not in done.stderr, f"git {words}: {done.stderr}\n{told}"


def assert_clean(world: World, told: str) -> None:
    assert world.json("ls") == [], told
    assert world.linked_worktrees() == [], told
    assert [b for b in world.branches() if b.startswith("tmuxorch/")] == [], told
    common = world.repo / ".git"
    left = [p for p in common.rglob("*") if p.suffix == ".lock" or "tmuxorch-" in p.name]
    assert left == [], told
    wait_for(lambda: not world.files_in_worktrees(), what="the end of all worktrees' files")


def trial(killer: Killer, name: str) -> None:
    world = killer.world
    told = killer.run("new", *NEW, "-n", name, "--", "sleep", "100")
    if killer.dice.random() < 0.3:  # what a killed one left does not stop another
        world.run("new", *NEW, "-n", f"{name}-next", "--", "sleep", "100")
        world.run("rm", "-y", f"{name}-next")
    if not any(agent["name"] == name for agent in world.json("ls")):
        assert_clean(world, told)
        world.run("new", *NEW, "-n", name, "--", "sleep", "100")
    else:
        (agent,) = world.json("ls")
        if agent["state"] == "creating":
            undo = killer.dice.choice((("rm", "-y", name), ("watch", "--once")))
            done = world.run(*undo, ok=False)
            assert done.returncode == 0, f"{done.stderr}\n{told}"
            assert_clean(world, told)
            assert_git_works(world, told)
            world.run("new", *NEW, "-n", name, "--", "sleep", "100")
    (agent,) = world.json("ls")
    Path(agent["worktree"], "new.txt").write_text("precious\n")
    told += killer.run("rm", "-y", name)
    if world.json("ls"):
        done = world.run("rm", "-y", name, ok=False)
        assert done.returncode == 0, f"{done.stderr}\n{told}"
    assert_clean(world, told)
    assert_git_works(world, told)
    entry = next(entry for entry in world.json("history") if entry["name"] == name)
    assert entry["id"] == agent["id"], told
    assert entry["salvage_ref"], told
    if killer.dice.random() < 0.3:
        told += killer.run("restore", entry["id"])
        restore_after(world, entry["id"], told)


def restore_after(world: World, entry_id: str, told: str) -> None:
    """A restore that was cut off is undone or done, and can be done again."""
    world.run("watch", "--once")
    if not world.json("ls"):
        done = world.run("restore", entry_id, ok=False)
        assert done.returncode == 0, f"{done.stderr}\n{told}"
    (agent,) = world.json("ls")
    assert Path(agent["worktree"], "new.txt").read_text() == "precious\n", told
    world.run("rm", "-y", agent["name"])
    assert_clean(world, told)
    assert_git_works(world, told)


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="kills by what /proc shows")
@pytest.mark.timeout(60 + KILLS * 10)
@pytest.mark.parametrize("part", range(PARTS))
def test_after_any_kill_the_next_command_ends_the_job(world: World, part: int) -> None:
    killer = Killer(world, random.Random(SEED * PARTS + part))
    for n in range(max(1, KILLS // PARTS // 2)):
        trial(killer, f"w{n}")
