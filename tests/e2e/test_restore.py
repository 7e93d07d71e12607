"""`restore`, `history` and `sweep` as a person meets them, on real tmux and git."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import World, wait_for

SLEEP = ("--", "sleep", "1000")


def removed_with_work(world: World, name: str = "w") -> dict[str, Any]:
    """A worker that was removed with staged, unstaged, untracked and ignored files."""
    made = world.new("-n", name, "paint the fence", *SLEEP)
    tree = Path(made["worktree"])
    (tree / "README").write_text("staged\n")
    world.git("add", "README", cwd=tree)
    (tree / "src/app.py").write_text("unstaged\n")
    (tree / "new file").write_text("untracked\n")
    (tree / "secret.log").write_text("ignored\n")
    world.run("rm", "-y", name)
    return made


def test_a_removed_worker_comes_back_with_all_its_work(world: World) -> None:
    made = removed_with_work(world)
    world.git("gc", "-q", "--prune=now")
    back = world.json("restore", "w")
    assert (back["name"], back["state"], back["status"]) == ("w", "exited", "done")
    assert back["id"] != made["id"]
    assert (back["branch"], back["worktree"]) == (made["branch"], made["worktree"])
    assert (back["task"], back["base_commit"]) == (made["task"], made["base_commit"])
    tree = Path(back["worktree"])
    status = world.git("status", "--porcelain", "--ignored", cwd=tree).splitlines()
    assert status == ["M  README", " M src/app.py", '?? "new file"', "!! secret.log"]
    assert (tree / "secret.log").read_text() == "ignored\n"
    [row] = world.json("history")
    assert row["restored_at"] is not None
    assert world.marked_panes() == []


def test_it_can_be_removed_and_restored_again(world: World) -> None:
    removed_with_work(world)
    world.json("restore", "w")
    world.run("rm", "-y", "w")
    back = world.json("restore", "w")
    assert (Path(back["worktree"]) / "secret.log").read_text() == "ignored\n"
    rows = world.json("history")
    assert len({row["id"] for row in rows}) == 2
    assert [row["restored_at"] is not None for row in rows] == [True, True]


def test_restored_twice_there_are_two_and_neither_takes_from_the_other(world: World) -> None:
    made = removed_with_work(world)
    first = world.json("restore", "w")
    second = world.json("restore", made["id"])
    assert (second["name"], second["branch"]) == ("w-2", "tmuxorch/w-2")
    for worker in (first, second):
        assert (Path(worker["worktree"]) / "new file").read_text() == "untracked\n"
    third = world.json("restore", "w", "-n", "third")
    assert third["name"] == "third"
    refused = world.run("restore", "w", "-n", "third", ok=False)
    assert refused.returncode == 1
    assert "third" in refused.stderr
    assert len(world.json("ls")) == 3


def test_with_start_its_agent_runs_again(world: World) -> None:
    removed_with_work(world)
    back = world.json("restore", "w", "--start")
    assert (back["state"], back["process"]["alive"]) == ("running", True)
    assert world.marked_panes() == [back["id"]]


def test_with_start_its_conversation_is_resumed(world: World) -> None:
    script = world.directory / "talker"
    script.write_text('#!/bin/sh\necho "$@" >> "$HOME/said"\nexec sleep 1000\n')
    script.chmod(0o755)
    (world.home / "config.toml").write_text(
        f'[agents.talker]\ncommand = ["{script}", "--id", "{{conversation}}"]\n'
        f'resume = ["{script}", "--resume", "{{conversation}}"]\n'
    )
    made = world.new("-n", "w", "-a", "talker", "hello")
    world.run("rm", "w")
    back = world.json("restore", "w", "--start")
    first, second = (world.home / "said").read_text().splitlines()
    conversation = first.split()[1]
    assert second == f"--resume {conversation}"
    assert back["worktree"] == made["worktree"], "agents keep conversations by directory"


def test_one_that_had_nothing_at_stake_comes_back_too(world: World) -> None:
    world.new("-n", "w", *SLEEP)
    world.run("rm", "w")
    assert "tmuxorch/w" not in world.branches()
    back = world.json("restore", "w")
    assert world.git("status", "--porcelain", cwd=Path(back["worktree"])) == ""
    assert "tmuxorch/w" in world.branches()
    world.run("rm", "w")
    world.assert_nothing_left()


def test_copied_files_come_back(world: World) -> None:
    (world.repo / ".tmuxorch.toml").write_text('[setup]\ncopy = [".env"]\n')
    world.run("config", "--trust", "-y")
    (world.repo / ".env").write_text("KEY=1\n")
    made = world.new("-n", "w", *SLEEP)
    assert (Path(made["worktree"]) / ".env").read_text() == "KEY=1\n"
    world.run("rm", "w")
    back = world.json("restore", "w")
    assert (Path(back["worktree"]) / ".env").read_text() == "KEY=1\n"
    world.run("rm", "w")


def commit_in(world: World, tree: str, name: str) -> str:
    (Path(tree) / name).write_text("done\n")
    world.git("add", name, cwd=Path(tree))
    world.git("commit", "-q", "-m", name, cwd=Path(tree))
    return world.git("rev-parse", "HEAD", cwd=Path(tree)).strip()


def test_a_branch_that_moved_on_stays_where_it_is(world: World) -> None:
    made = world.new("-n", "w", *SLEEP)
    commit = commit_in(world, made["worktree"], "one")
    (Path(made["worktree"]) / "new").write_text("unsaved\n")
    world.run("rm", "-y", "w")
    world.git("checkout", "-q", "tmuxorch/w")
    moved = commit_in(world, str(world.repo), "two")
    world.git("checkout", "-q", "main")
    back = world.json("restore", "w")
    assert back["branch"] == "tmuxorch/w-2"
    assert world.git("rev-parse", "tmuxorch/w").strip() == moved
    assert world.git("rev-parse", "tmuxorch/w-2").strip() == commit
    assert (Path(back["worktree"]) / "new").read_text() == "unsaved\n"


@pytest.mark.parametrize("deleted", [False, True])
def test_after_a_merge_it_comes_back_as_it_was(world: World, deleted: bool) -> None:
    made = world.new("-n", "w", *SLEEP)
    commit = commit_in(world, made["worktree"], "one")
    world.run("rm", "-y", "w")
    world.git("merge", "-q", "--no-ff", "--no-edit", "tmuxorch/w")
    if deleted:
        world.git("branch", "-q", "-D", "tmuxorch/w")
        world.git("gc", "-q", "--prune=now")
    back = world.json("restore", "w")
    assert back["branch"] == "tmuxorch/w"
    assert world.git("rev-parse", "HEAD", cwd=Path(back["worktree"])).strip() == commit


def test_a_branch_of_the_persons_own_is_still_theirs_after_restoring(world: World) -> None:
    world.git("branch", "mine")
    world.new("-n", "w", "--branch", "mine", *SLEEP)
    world.run("rm", "w")
    world.json("restore", "w")
    world.run("rm", "w")
    assert "mine" in world.branches()


def test_what_cannot_be_restored_says_why_and_makes_nothing(world: World) -> None:
    made = removed_with_work(world)
    shutil.rmtree(world.state / "archive" / made["id"])
    done = world.run("restore", "w", "--json", ok=False)
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["code"] == "cannot_restore"
    assert world.json("ls") == []
    assert world.linked_worktrees() == []
    unknown = world.run("restore", "nobody", "--json", ok=False)
    assert json.loads(unknown.stderr)["error"]["code"] == "unknown_name"


def test_names_mean_the_newest_and_prefixes_must_be_unique(world: World) -> None:
    first = removed_with_work(world, "fix-one")
    world.new("-n", "fix-one", "second", "--no-wait", *SLEEP)
    world.run("rm", "fix-one")
    world.new("-n", "fix-two", "--no-wait", *SLEEP)
    world.run("rm", "fix-two")
    done = world.run("restore", "fix", "--json", ok=False)
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "ambiguous_name"
    assert first["id"] in error["message"]
    assert world.json("restore", "fix-o")["task"] == "second"
    assert world.json("restore", first["id"][:6])["task"] == "paint the fence"


def test_history_is_narrowed_and_one_is_shown_in_full(world: World) -> None:
    removed_with_work(world)
    world.new("-n", "other", "mow the lawn", "--no-wait", *SLEEP)
    world.run("rm", "other")
    failed = world.run("new", "-n", "bad", "--", "sh", "-c", "echo oh dear; exit 3", ok=False)
    assert failed.returncode == 1
    assert [r["name"] for r in world.json("history", "--reason", "create_failed")] == ["bad"]
    assert [r["name"] for r in world.json("history", "FENC")] == ["w"]
    assert [r["name"] for r in world.json("history", "dear")] == ["bad"]
    assert len(world.json("history", "--since", "1h")) == 3
    assert world.json("history", "--since", "2100-01-01") == []
    assert world.run("history", "--since", "yesterday", ok=False).returncode == 2
    shown = world.run("history", "w").stdout
    assert "paint the fence" in shown
    assert "refs/tmuxorch/salvage/" in shown
    assert "oh dear" in world.run("history", "bad").stdout
    assert "oh dear" in world.run("logs", "bad").stdout


def test_a_process_of_somebody_elses_in_the_worktree_is_at_stake(world: World) -> None:
    made = world.new("-n", "w", *SLEEP)
    with subprocess.Popen(["sleep", "100"], cwd=made["worktree"]) as process:
        done = world.run("rm", "w", ok=False)
        assert done.returncode == 1
        assert f"{process.pid} (sleep 100)" in done.stderr
        assert world.json("ls")[0]["process"]["alive"] is True
        world.run("rm", "-y", "w")
        assert process.poll() is None
        process.kill()
    assert world.json("history")[0]["salvage_ref"] is None
    world.assert_nothing_left()


def test_a_writer_that_does_not_stop_keeps_the_worktree(world: World) -> None:
    made = world.new("-n", "w", *SLEEP)
    writer = "import os, time\nf = open('late.txt', 'w')\n" + (
        "while True:\n f.write('x'); f.flush(); time.sleep(0.001)"
    )
    # With a terminal or a HOME of its own it is a person's program, which nobody may end.
    with subprocess.Popen(
        ["python3", "-c", writer], cwd=made["worktree"], env=world.environ
    ) as process:
        wait_for((Path(made["worktree"]) / "late.txt").exists)
        done = world.run("rm", "-y", "w", ok=False)
        assert done.returncode == 1
        assert "nothing was deleted" in done.stderr
        assert world.json("ls")[0]["state"] == "quarantined"
        assert world.json("history") == []
        process.kill()
    size = (Path(made["worktree"]) / "late.txt").stat().st_size
    world.run("rm", "-y", "w")
    [row] = world.json("history")
    back = world.json("restore", row["id"])
    assert (Path(back["worktree"]) / "late.txt").stat().st_size == size


def lose_record(world: World, agent_id: str) -> None:
    import sqlite3

    db = sqlite3.connect(world.state / "tmuxorch.db")
    with db:
        db.execute("DELETE FROM agents WHERE id = ?", [agent_id])
    db.close()


def test_sweep_finds_what_lost_its_record_and_never_ends_a_process(world: World) -> None:
    live = world.new("-n", "live", *SLEEP)
    ended = world.new("-n", "ended", "--", "sh", "-c", "sleep 0.5")
    wait_for(lambda: not psutil.pid_exists(ended["process"]["pid"]))
    (Path(ended["worktree"]) / "new.txt").write_text("precious\n")
    for worker in (live, ended):
        lose_record(world, worker["id"])
    found = world.json("sweep")
    assert {"kind", "repo", "reason", "bytes", "action", "done"} <= set(found[0])
    actions = {(o["kind"], o.get("path") or o.get("id") or o["pid"]): o["action"] for o in found}
    assert actions["worktree", live["worktree"]] == "keep"
    assert actions["window", live["tmux"]["window"]] == "report"
    assert actions["window", ended["tmux"]["window"]] == "remove"
    assert actions["process", live["process"]["pid"]] == "report"
    assert world.json("sweep") == found, "without --apply nothing changes"
    world.run("sweep", "--apply")
    assert world.marked_panes() == [live["id"]]
    assert psutil.pid_exists(live["process"]["pid"])
    # The window's shim worked in the worktree; now that it is gone, so may the worktree be.
    wait_for(lambda: not world.processes(ended["id"]))
    world.run("sweep", "--apply")
    assert not Path(ended["worktree"]).exists()
    [row] = world.json("history")
    assert (row["reason"], row["id"]) == ("swept", ended["id"])
    assert (world.state / "archive" / row["id"] / "files/new.txt").read_text() == "precious\n"
    text = world.run("sweep")
    assert "kill" in text.stderr
    os.kill(live["process"]["pid"], signal.SIGKILL)


def test_windows_of_another_store_on_the_same_server_are_not_ours(world: World) -> None:
    other = {"TMUXORCH_STATE_DIR": str(world.directory / "other")}
    world.new("-n", "theirs", *SLEEP, env=other)
    assert world.json("sweep") == []
    world.run("rm", "theirs", env=other)


def test_old_history_that_holds_work_is_kept_and_said_so(world: World) -> None:
    removed_with_work(world)
    (world.home / "config.toml").write_text("[history]\nkeep_days = 1\n")
    import sqlite3

    db = sqlite3.connect(world.state / "tmuxorch.db")
    with db:
        db.execute("UPDATE history SET removed_at = ?", [time.time() - 3 * 86_400])
    db.close()
    [found] = world.json("sweep", "--apply")
    assert (found["kind"], found["action"], found["done"]) == ("history", "keep", False)
    assert "not committed" in found["reason"]
    assert len(world.json("history")) == 1
