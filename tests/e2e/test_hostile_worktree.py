"""Whatever an agent plants in its worktree, no look at it runs a program or waits for ever."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import World, wait_for
from tests.hostile_kit import HOOKS, ODD, PLANTS, Kit
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.context import open_context
from tmuxorch.tui import change_counter, panels
from tmuxorch.tui.snapshot import AgentRow

SLEEP = ("--", "sleep", "1000")
# Every command that only looks, or ends and keeps; `NAME` is the worker.
LOOKS = (
    ("ls",), ("ls", "--json"), ("show", "NAME"), ("diff", "NAME"), ("diff", "NAME", "--stat"),
    ("logs", "NAME"), ("why", "NAME"), ("events",), ("rm", "NAME"), ("doctor",),
    ("doctor", "--repair"), ("sweep",), ("sweep", "--apply"), ("history",), ("watch", "--once"),
    ("merge", "NAME"), ("config",),
)  # fmt: skip


def picture(top: Path, *, but: tuple[Path, ...] = ()) -> dict[str, tuple[str, str]]:
    """Type, mode and bytes of everything below, except in some places."""
    seen = {}
    for here, directories, names in os.walk(top):
        directories[:] = [d for d in directories if Path(here, d) not in but]
        for name in [*names, *directories]:
            path = os.path.join(here, name)
            facts = os.lstat(path)
            mark = ""
            if stat.S_ISLNK(facts.st_mode):
                mark = os.readlink(path)
            elif stat.S_ISREG(facts.st_mode):
                mark = hashlib.sha1(Path(path).read_bytes()).hexdigest()
            if not stat.S_ISSOCK(facts.st_mode):
                seen[os.path.relpath(path, top)] = (oct(facts.st_mode), mark)
    return seen


def mine(world: World) -> dict[str, tuple[str, str]]:
    """The person's own files: checkout and home, less what git itself keeps."""
    return picture(world.repo, but=(world.repo / ".git",)) | picture(world.home)


@pytest.mark.parametrize("plant", PLANTS)
def test_no_look_runs_what_is_planted_and_all_of_it_comes_back(
    world: World, plant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in world.environ.items():
        monkeypatch.setenv(name, value)
    kit = Kit.make(world.directory, world.environ)
    made = world.new("-n", "w", *SLEEP)
    top = Path(made["worktree"])
    kit.person(world.home / ".gitconfig")
    PLANTS[plant](kit, top)
    before, files = mine(world), picture(top)
    for command in LOOKS:
        done = world.run(*("w" if word == "NAME" else word for word in command), ok=False)
        assert done.returncode in (0, 1), f"{command}: {done.stderr}"
        assert kit.sung == [], command
    look_as_the_screen_does(world)
    assert kit.sung == []
    world.run("stop", "w")
    world.run("watch", "--once")
    assert kit.sung == []
    assert picture(top) == files, "a look changes nothing"
    said = world.run("rm", "w", ok=False).stderr
    assert ("does not lead to" in said) == (plant in ODD), said
    world.run("rm", "-y", "w")
    world.run("sweep", "--apply")
    assert kit.sung == []
    assert mine(world) == before
    back = world.json("restore", "w")
    again = picture(Path(back["worktree"]))
    if again.get(".git", ("", ""))[0].startswith("0o100"):
        files[".git"] = again[".git"]  # that one file is git's own, and made anew
    assert again == files
    assert kit.sung == [], "neither does a restore"
    assert mine(world) == before


def look_as_the_screen_does(world: World) -> None:
    """Counts, diff and health, as the threads of the TUI ask for them."""
    ctx = open_context(world.environ, socket=world.socket)
    try:
        for agent in ctx.store.agents():
            row = AgentRow(agent, agent.state, agent.status, None)
            change_counter.changes_of(row)
            panels.health_of(ctx, row)
            with suppress(TmuxorchError):
                panels.diff_of(agent)
    finally:
        ctx.store.close()


@pytest.mark.parametrize("plant", ODD)
def test_the_watcher_leaves_a_worker_alone_whose_dot_git_is_not_ours(
    world: World, plant: str
) -> None:
    kit = Kit.make(world.directory, world.environ)
    go = world.directory / "go"
    script = f"while ! [ -e {go} ]; do sleep 0.05; done"
    made = world.new("-n", "w", "--", "sh", "-c", script)
    top = Path(made["worktree"])
    (world.home / "config.toml").write_text('[cleanup]\ndead = "always"\n')
    PLANTS[plant](kit, top)
    go.touch()
    wait_for(lambda: "done" in world.run("ls").stdout, what="the agent's end")
    world.run("watch", "--once")
    assert [row["name"] for row in world.json("ls")] == ["w"], "kept for review"
    assert "does not lead to" in world.run("why", "w").stdout
    assert kit.sung == []


def test_a_worktree_that_became_a_link_is_never_followed(world: World) -> None:
    made = world.new("-n", "w", *SLEEP)
    top = Path(made["worktree"])
    elsewhere = world.directory / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("mine\n")
    top.rename(world.directory / "moved")
    top.symlink_to(elsewhere)
    before = picture(elsewhere)
    for command in (*LOOKS, ("stop", "NAME"), ("watch", "--once"), ("rm", "-y", "NAME")):
        done = world.run(*("w" if word == "NAME" else word for word in command), ok=False)
        assert done.returncode in (0, 1), f"{command}: {done.stderr}"
        assert picture(elsewhere) == before, command
    assert done.returncode == 1, "what is not the worktree that was made is not removed"
    assert top.is_symlink()


def test_a_persons_own_commands_run_just_what_git_runs_there(world: World) -> None:
    kit = Kit.make(world.directory, world.environ)
    (world.repo / ".gitattributes").write_text("*.p filter=theirs\n")
    (world.repo / "file.p").write_text("text\n")
    world.git("add", ".")
    world.git("commit", "-q", "-m", "attributes")
    for key in ("clean", "smudge"):
        run = f"{kit.command(key)}; cat"
        world.git("config", "filter.theirs." + key, run)
    for name in HOOKS:
        hook = world.repo / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{kit.command(name)}\nexit 0\n")
        hook.chmod(0o755)
    top = Path(world.new("-n", "w", *SLEEP)["worktree"])
    ran = {"new": kit.take()}
    (top / "file.p").write_text("edited\n")
    world.run("diff", "w")
    world.run("rm", "-y", "w")
    ran["looks"] = kit.take()
    world.run("restore", "w")
    ran["restore"] = kit.take()
    world.run("merge", "w", "--commit")
    ran["merge"] = kit.take()
    commit = {"clean", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"}
    assert ran == {
        "new": {"smudge", "post-checkout", "post-index-change", "reference-transaction"},
        "looks": set(),
        "restore": {"reference-transaction"},
        "merge": {*commit, "smudge", "post-merge", "post-index-change", "reference-transaction"},
    }
