"""`rm`: nothing is left of a worker but what could have been lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import World, needs_proc, wait_for
from tests.integration.test_processes import MAPPER

SLEEP = ("--", "sleep", "1000")
HISTORY_KEYS = {
    *("id", "name", "repo", "task", "agent", "branch", "base_commit", "head_commit", "reason"),
    *("exit", "created_at", "removed_at", "duration_s", "commits", "files_changed", "insertions"),
    *("deletions", "salvage_ref", "branch_kept", "restored_at", "last_screen"),
}


def commit_in(world: World, worker: dict[str, Any], name: str = "done.txt") -> str:
    tree = Path(worker["worktree"])
    (tree / name).write_text("done\n")
    world.git("add", name, cwd=tree)
    world.git("commit", "-q", "-m", f"add {name}", cwd=tree)
    return world.git("rev-parse", "HEAD", cwd=tree).strip()


def salvage_refs(world: World) -> list[str]:
    return world.git("for-each-ref", "--format=%(refname)", "refs/tmuxorch").split()


def test_a_worker_without_work_goes_without_a_question_or_a_trace(world: World) -> None:
    script = "sleep 1000 & setsid sleep 1000 & echo busy; exec sleep 1000"
    made = world.new("-n", "a", "the task", "--", "sh", "-c", script)
    wait_for(lambda: "busy" in world.screen(made["tmux"]["pane"]))
    [removed] = world.json("rm", "a")
    world.assert_nothing_left()
    assert salvage_refs(world) == []
    assert world.json("ls") == []
    assert not Path(made["worktree"]).exists()
    assert world.git("status", "--porcelain") == ""
    [row] = world.json("history")
    assert row == removed
    assert set(row) >= HISTORY_KEYS
    assert (row["id"], row["name"], row["task"]) == (made["id"], "a", "the task")
    assert (row["reason"], row["commits"], row["files_changed"]) == ("user", 0, 0)
    assert (row["salvage_ref"], row["branch_kept"], row["restored_at"]) == (None, False, None)
    assert row["base_commit"] == row["head_commit"] == made["base_commit"]
    assert isinstance(row["duration_s"], float)
    assert set(row["exit"]) == {"code", "signal"}
    assert row["last_screen"] == "busy"


@pytest.mark.parametrize("name", ["README", "new.txt", "secret.log"])
def test_uncommitted_work_is_refused_without_yes_and_untouched(world: World, name: str) -> None:
    made = world.new("-n", "a", *SLEEP)
    path = Path(made["worktree"]) / name
    path.write_text("work\n")
    done = world.run("rm", "a", ok=False)
    assert done.returncode == 1
    assert "-y" in done.stderr
    assert name in done.stderr
    assert path.read_text() == "work\n"
    [row] = world.json("ls")
    assert row["process"]["alive"] is True
    assert world.marked_panes() == [made["id"]]
    assert world.json("history") == []
    assert salvage_refs(world) == []


def test_commits_are_refused_without_yes_and_kept_on_their_branch(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    commit = commit_in(world, made)
    done = world.run("rm", "a", ok=False)
    assert done.returncode == 1
    assert "commit" in done.stderr
    assert world.marked_panes() == [made["id"]]
    [row] = world.json("rm", "-y", "a")
    assert row["branch_kept"] is True
    assert (row["commits"], row["files_changed"], row["insertions"]) == (1, 1, 1)
    assert row["head_commit"] == commit
    assert world.git("rev-parse", "tmuxorch/a").strip() == commit
    assert world.linked_worktrees() == []
    assert world.marked_panes() == []


def test_one_with_work_among_several_stops_them_all(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    world.new("-n", "b", *SLEEP)
    (Path(made["worktree"]) / "new.txt").write_text("work\n")
    done = world.run("rm", "b", "a", ok=False)
    assert done.returncode == 1
    assert len(world.marked_panes()) == 2


def test_yes_saves_staged_unstaged_untracked_and_ignored_files(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    tree = Path(made["worktree"])
    (tree / "staged.txt").write_text("staged\n")
    world.git("add", "staged.txt", cwd=tree)
    (tree / "README").write_text("changed\n")
    (tree / "new.txt").write_text("new\n")
    (tree / "secret.log").write_text("secret\n")
    [row] = world.json("rm", "-y", "a")
    ref = row["salvage_ref"]
    assert ref.startswith("refs/tmuxorch/salvage/")
    assert ref in salvage_refs(world)
    save = world.state / "archive" / made["id"]
    kept = {"staged.txt": "staged", "README": "changed", "new.txt": "new", "secret.log": "secret"}
    for name, text in kept.items():
        assert (save / "files" / name).read_text() == f"{text}\n"
    assert all(p.stat().st_mode & 0o077 == 0 for p in (save, save.parent))
    assert row["branch_kept"] is False
    world.assert_nothing_left()


def test_what_was_not_committed_is_out_of_reach_of_every_push(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    tree = Path(made["worktree"])
    for name in ("staged", "untracked", "ignored.log"):
        (tree / name).write_text(f"key of {name}\n")
    world.git("add", "staged", cwd=tree)
    world.run("rm", "-y", "a")
    mirror = world.directory / "mirror.git"
    world.git("init", "-q", "--bare", str(mirror))
    world.git("push", "-q", "--mirror", str(mirror))
    listed = world.git("cat-file", "--batch-all-objects", "--batch-check", cwd=mirror)
    blobs = [line.split()[0] for line in listed.splitlines() if " blob " in line]
    assert blobs, "the mirror has what was committed"
    assert not any("key of" in world.git("cat-file", "blob", b, cwd=mirror) for b in blobs)


def test_the_branch_stays_on_demand(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    [row] = world.json("rm", "--keep-branch", "a")
    assert row["branch_kept"] is True
    assert "tmuxorch/a" in world.branches()


def test_a_new_worker_does_not_take_over_a_kept_branch(world: World) -> None:
    commit = commit_in(world, world.new("-n", "a", *SLEEP))
    world.run("rm", "-y", "a")
    again = world.new("-n", "a", *SLEEP)
    assert again["branch"] != "tmuxorch/a"
    world.run("rm", "a")
    assert world.git("rev-parse", "tmuxorch/a").strip() == commit


def test_a_detached_heads_commit_is_kept(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    world.git("checkout", "-q", "--detach", cwd=Path(made["worktree"]))
    commit = commit_in(world, made)
    assert world.run("rm", "a", ok=False).returncode == 1
    [row] = world.json("rm", "-y", "a")
    held = world.git("for-each-ref", "--contains", commit, "--format=%(refname)").split()
    assert row["salvage_ref"] in held


def test_a_stopped_and_a_crashed_worker_are_removed_too(world: World) -> None:
    world.new("-n", "stopped", *SLEEP)
    world.run("stop", "stopped")
    crashed = world.new("-n", "crashed", *SLEEP)
    psutil.Process(crashed["process"]["pid"]).kill()
    wait_for(lambda: [a for a in world.json("ls") if a["status"] == "crashed"])
    rows = world.json("rm", "stopped", "crashed")
    assert [row["name"] for row in rows] == ["stopped", "crashed"]
    assert rows[1]["exit"] == {"code": None, "signal": 9}
    world.assert_nothing_left()


def test_a_worker_whose_window_was_closed_by_hand_is_removed(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    world.tmux("kill-window", "-t", made["tmux"]["window"])
    wait_for(lambda: not world.processes(made["id"]))
    world.run("rm", "a")
    world.assert_nothing_left()


def test_a_worker_whose_server_is_gone_is_removed(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    world.tmux("kill-server")
    wait_for(lambda: not world.processes(made["id"]))
    world.run("rm", "a")
    world.assert_nothing_left()


def test_the_same_name_twice_is_removed_once(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    assert len(world.json("rm", "a", made["id"])) == 1


def test_an_agent_cannot_remove_itself_from_inside(world: World) -> None:
    script = "until [ -e go ]; do sleep 0.05; done; tmuxorch rm -y a 2>said; echo $? >status; cat"
    made = world.new("-n", "a", "--", "sh", "-c", script)
    tree = Path(made["worktree"])
    (tree / "go").touch()
    wait_for(lambda: (tree / "status").exists() and (tree / "status").read_text())
    assert (tree / "status").read_text() == "1\n"
    assert "another terminal" in (tree / "said").read_text()
    assert world.json("ls")[0]["process"]["alive"] is True


def test_history_is_newest_first_searched_and_limited(world: World) -> None:
    other = world.make_repo("other")
    for name, task, repo in (
        ("one", "paint the fence", world.repo),
        ("two", "mow 100% of_the lawn", world.repo),
        ("three", "paint the door", other),
    ):
        world.new("-n", name, task, "--no-wait", *SLEEP, cwd=repo)
        world.run("rm", name, cwd=repo)
    names = [row["name"] for row in world.json("history")]
    assert names == ["three", "two", "one"]
    assert [row["name"] for row in world.json("history", "paint")] == ["three", "one"]
    assert [row["name"] for row in world.json("history", "100%")] == ["two"]
    assert world.json("history", "%%") == []
    assert [row["name"] for row in world.json("history", "-n", "1")] == ["three"]
    assert [row["name"] for row in world.json("history", "--repo", str(other))] == ["three"]
    text = world.run("history").stdout
    assert "paint the fence" in text
    assert "user" in text


def test_what_a_killed_shim_could_not_end_is_ended(world: World) -> None:
    script = "setsid sleep 1000 & setsid sh -c 'trap \"\" HUP TERM; sleep 1000' & exec sleep 1000"
    made = world.new("-n", "a", "--", "sh", "-c", script)
    wait_for(lambda: len(world.processes(made["id"])) >= 4)
    psutil.Process(made["process"]["shim_pid"]).kill()
    wait_for(lambda: not world.marked_panes())
    assert world.processes(made["id"]), "nobody has ended them yet"
    world.run("rm", "a")
    world.assert_nothing_left()


@needs_proc
@pytest.mark.parametrize("verb", [["stop"], ["rm", "-y"], ["restart"]])
def test_a_persons_daemon_without_an_environment_is_no_agents(
    world: World, verb: list[str]
) -> None:
    made = world.new("-n", "a", *SLEEP)
    note = world.directory / "pid"
    # Twice forked, so that nothing but its directory is left to tell whose it is.
    script = f"echo $$ > {note}.part; mv {note}.part {note}; exec sleep 1000"
    daemon = ["setsid", "-f", "env", "-i", "/bin/sh", "-c", script]
    subprocess.run(daemon, cwd=made["worktree"], check=True)
    wait_for(note.exists)
    theirs = psutil.Process(int(note.read_text()))
    try:
        said = world.run("rm", "a", ok=False)
        assert f"process {theirs.pid}" in said.stderr or str(theirs.pid) in said.stderr
        world.run(*verb, "a")
        assert theirs.is_running()
        assert theirs.status() != psutil.STATUS_ZOMBIE
    finally:
        theirs.kill()


@needs_proc
def test_a_file_that_a_stranger_has_mapped_is_not_deleted_under_it(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    data = Path(made["worktree"]) / "data"
    data.write_bytes(b"x" * 4096)
    ready = world.directory / "ready"
    with subprocess.Popen(
        [sys.executable, "-c", MAPPER, "O_RDWR", "MAP_SHARED", "PROT_WRITE", data, ready], cwd="/"
    ) as stranger:
        wait_for(ready.exists, what="the mapping")
        try:
            said = world.run("rm", "-y", "a", ok=False)
            assert said.returncode == 1
            assert f"process {stranger.pid}" in said.stderr
            assert data.read_bytes() == b"x" * 4096
        finally:
            stranger.kill()
    world.run("rm", "-y", "a")
    assert world.linked_worktrees() == []
