"""`merge`: a worker's work arrives on its base branch, on the command line as a person types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World, wait_for

SLEEP = ("--", "sleep", "1000")


def commit_in(world: World, worker: dict[str, Any], name: str = "done.txt") -> str:
    tree = Path(worker["worktree"])
    (tree / name).write_text("done\n")
    world.git("add", name, cwd=tree)
    world.git("commit", "-q", "-m", f"add {name}", cwd=tree)
    return world.git("rev-parse", "HEAD", cwd=tree).strip()


def main_at(world: World) -> str:
    return world.git("rev-parse", "main").strip()


def test_a_workers_commits_arrive_while_it_runs_on(world: World) -> None:
    made = world.new("-n", "a", "the task", *SLEEP)
    before, head = main_at(world), commit_in(world, made)
    done = world.run("merge", "a")
    assert done.stdout == ""
    assert "merged 1 commit of a into main" in done.stderr
    assert main_at(world) == head != before
    assert (world.repo / "done.txt").read_text() == "done\n"
    assert world.json("ls")[0]["process"]["alive"] is True
    again = world.run("merge", "a")
    assert "nothing to merge" in again.stderr


def test_json_says_what_was_merged(world: World) -> None:
    made = world.new("-n", "a", "the task", *SLEEP)
    before, head = main_at(world), commit_in(world, made)
    merged = world.json("merge", "a")
    assert merged == {
        "id": made["id"],
        "name": "a",
        "branch": "tmuxorch/a",
        "base": "main",
        "how": "merge",
        "before": before,
        "after": head,
        "commits": [{"oid": head, "title": "add done.txt"}],
        "removed": None,
    }
    assert world.json("merge", "a")["commits"] == []


def test_rm_leaves_nothing_of_a_merged_worker_but_its_work(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    head = commit_in(world, made)
    merged = world.json("merge", "a", "--rm")
    assert merged["removed"]["id"] == made["id"]
    assert merged["removed"]["branch_kept"] is False
    world.assert_nothing_left()
    assert main_at(world) == head


@pytest.mark.parametrize("how", ["--squash", "--rebase"])
def test_rm_keeps_the_branch_of_commits_that_were_copied(world: World, how: str) -> None:
    made = world.new("-n", "a", *SLEEP)
    head = commit_in(world, made)
    (world.repo / "other.txt").write_text("other\n")
    world.git("add", ".")
    world.git("commit", "-q", "-m", "other")
    done = world.run("merge", "a", how, "--rm")
    assert "branch tmuxorch/a is kept" in done.stderr
    assert world.git("rev-parse", "tmuxorch/a").strip() == head
    assert (world.repo / "done.txt").exists()
    assert world.marked_panes() == []
    assert world.linked_worktrees() == []


def test_rm_keeps_a_worker_that_holds_more_and_says_what(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    head = commit_in(world, made)
    (Path(made["worktree"]) / "secret.log").write_text("secret\n")
    done = world.run("merge", "a", "--rm", "--json", ok=False)
    assert done.returncode == 1
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "work_at_stake"
    assert "secret.log" in error["message"]
    assert json.loads(done.stdout)["after"] == head == main_at(world)
    assert world.json("ls")[0]["process"]["alive"] is True
    assert (Path(made["worktree"]) / "secret.log").read_text() == "secret\n"


def test_a_refusal_keeps_the_worker_too(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    commit_in(world, made, "README")
    (world.repo / "README").write_text("mine\n")
    before = main_at(world)
    done = world.run("merge", "a", "--rm", ok=False)
    assert done.returncode == 1
    assert "README" in done.stderr
    assert (world.repo / "README").read_text() == "mine\n"
    assert main_at(world) == before
    assert world.marked_panes() == [made["id"]]


def test_uncommitted_work_is_listed_then_committed_on_demand(world: World) -> None:
    made = world.new("-n", "a", "Make it\nbetter", *SLEEP)
    (Path(made["worktree"]) / "new.txt").write_text("new\n")
    refusal = world.run("merge", "a", "--json", ok=False)
    assert refusal.returncode == 1
    assert json.loads(refusal.stderr)["error"]["code"] == "cannot_merge"
    assert "new.txt" in refusal.stderr
    merged = world.json("merge", "a", "--commit")
    assert [commit["title"] for commit in merged["commits"]] == ["Make it"]
    assert (world.repo / "new.txt").read_text() == "new\n"


def use_git_without_merge_tree(world: World) -> None:
    """As before git 2.38: `merge-tree` has another meaning and no `--write-tree`."""
    programs = world.directory / "programs"
    programs.mkdir()
    real = shutil.which("git")
    (programs / "git").write_text(
        f'#!/bin/sh\ncase " $* " in *" --write-tree "*) exit 129;; esac\nexec {real} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    world.environ["PATH"] = f"{programs}:{world.environ['PATH']}"


@pytest.mark.parametrize("how", [(), ("--squash",), ("--rebase",)], ids=str)
def test_an_older_git_that_cannot_merge_says_so_before_anything_is_committed(
    world: World, how: tuple[str, ...]
) -> None:
    made = world.new("-n", "a", *SLEEP)
    commit_in(world, {"worktree": str(world.repo)}, "moved-on.txt")
    use_git_without_merge_tree(world)
    tree = Path(made["worktree"])
    (tree / "new.txt").write_text("new\n")
    before = main_at(world), world.git("rev-parse", "HEAD", cwd=tree)
    refusal = world.run("merge", "a", "--commit", *how, ok=False)
    assert refusal.returncode == 1
    assert "needs git 2.38 or newer; nothing was changed" in refusal.stderr
    assert (main_at(world), world.git("rev-parse", "HEAD", cwd=tree)) == before
    assert world.git("status", "--porcelain", cwd=tree) == "?? new.txt\n"


@pytest.mark.parametrize("how", [(), ("--squash",), ("--rebase",)], ids=str)
def test_an_older_git_merges_what_has_not_diverged(world: World, how: tuple[str, ...]) -> None:
    made = world.new("-n", "a", *SLEEP)
    use_git_without_merge_tree(world)
    (Path(made["worktree"]) / "new.txt").write_text("new\n")
    world.run("merge", "a", "--commit", *how)
    assert (world.repo / "new.txt").read_text() == "new\n"


def test_what_refuses_a_merge_is_found_before_the_commit_for_it(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    tree = Path(made["worktree"])
    commit_in(world, {"worktree": str(world.repo)}, "moved-on.txt")
    world.git("config", "merge.ff", "only")
    (tree / "new.txt").write_text("new\n")
    before = world.git("rev-parse", "HEAD", cwd=tree)
    refusal = world.run("merge", "a", "--commit", ok=False)
    assert (refusal.returncode, "merge.ff" in refusal.stderr) == (1, True)
    assert world.git("rev-parse", "HEAD", cwd=tree) == before


def test_squash_and_rebase_together_are_wrong_usage(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    assert world.run("merge", "a", "--squash", "--rebase", ok=False).returncode == 2


def test_a_conflict_is_an_expected_failure_with_its_files(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    commit_in(world, made, "README")
    (world.repo / "README").write_text("ours\n")
    world.git("commit", "-q", "-am", "ours")
    done = world.run("merge", "a", "--json", ok=False)
    assert done.returncode == 1
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "merge_conflict"
    assert "README" in error["message"]


def test_an_agent_may_merge_itself_but_not_remove_itself(world: World) -> None:
    script = (
        "until [ -e go ]; do sleep 0.05; done; rm go; echo hi >hi; git add hi; git commit -qm hi;"
        " tmuxorch merge a --rm 2>../said; tmuxorch merge a 2>>../said; echo $? >../status; cat"
    )
    made = world.new("-n", "a", "--", "sh", "-c", script)
    tree = Path(made["worktree"])
    (tree / "go").touch()
    status = tree.parent / "status"
    wait_for(lambda: status.exists() and status.read_text())
    assert status.read_text() == "0\n"
    assert "another terminal" in (tree.parent / "said").read_text()
    assert (world.repo / "hi").exists()
