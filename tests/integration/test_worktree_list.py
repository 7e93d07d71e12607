"""The list of worktrees is read off git's files: it says what git says, and never fails."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workshop import Workshop
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.admin import list_admins

FILES = ("gitdir", "HEAD", "commondir", "locked", "index")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


def as_git_says(shop: Workshop, repo: Path) -> list[dict[str, str]]:
    answer = shop.sh(repo, "worktree", "list", "--porcelain", "-z", ok=False)
    if not answer:
        pytest.skip("git before 2.36 cannot say it without doubt")
    said = answer.split("\0\0")
    return [
        {key: value for key, _, value in (line.partition(" ") for line in block.split("\0"))}
        for block in said
        if block
    ]


def assert_same(shop: Workshop, repo: Path) -> None:
    main, *linked = git.list_worktrees(git.find_repo(str(repo)))
    by_git = as_git_says(shop, repo)
    said = [
        {
            "worktree": found.path,
            **({"HEAD": found.head} if found.head else {}),
            **({"branch": f"refs/heads/{found.branch}"} if found.branch else {}),
            **({"detached": ""} if not found.branch and not found.bare else {}),
            **({"locked": found.locked_reason} if found.locked_reason is not None else {}),
            **({"bare": ""} if found.bare else {}),
        }
        for found in (main, *linked)
    ]
    prunable = {found.path for found in linked if found.prunable}
    assert prunable == {said["worktree"] for said in by_git if "prunable" in said}
    for facts in by_git:
        facts.pop("prunable", None)
    assert said[0] == by_git[0]
    assert sorted(said, key=str) == sorted(by_git, key=str)


def test_it_says_what_git_says(shop: Workshop) -> None:
    home = shop.directory / "linked"
    shop.sh(shop.repo, "worktree", "add", "-q", "-b", "plain", str(home / "plain"))
    shop.sh(shop.repo, "worktree", "add", "-q", "--detach", str(home / "detached"))
    shop.sh(shop.repo, "worktree", "add", "-q", "-b", "a/b", str(home / "new\nline"))
    shop.sh(shop.repo, "worktree", "add", "-q", "-b", "packed", str(home / "packed"))
    shop.sh(shop.repo, "worktree", "add", "-q", "-b", "gone", str(home / "gone"))
    odd = os.fsdecode(os.fsencode(home) + b"/caf\xe9")
    shop.sh(shop.repo, "worktree", "add", "-q", "--lock", "--reason", "two words", odd)
    shop.sh(shop.repo, "worktree", "lock", str(home / "plain"))
    subprocess.run(["rm", "-r", home / "gone"], check=True)
    shop.sh(shop.repo, "pack-refs", "--all")
    shop.commit(home / "plain", "loose.txt")
    assert_same(shop, shop.repo)


def test_a_relative_path_leads_to_the_same_place(shop: Workshop) -> None:
    agent = shop.worker()
    (admin,) = list_admins(git.find_repo(str(shop.repo)))
    relative = os.path.relpath(f"{agent.task.worktree}/.git", admin.directory)
    Path(admin.directory, "gitdir").write_text(f"{relative}\n")
    assert git.list_worktrees(git.find_repo(str(shop.repo)))[1].path == agent.task.worktree


def test_a_bare_repository_is_listed_as_git_lists_it(shop: Workshop) -> None:
    bare = shop.directory / "bare.git"
    shop.sh(shop.directory, "clone", "-q", "--bare", str(shop.repo), str(bare))
    shop.sh(bare, "worktree", "add", "-q", "-b", "x", str(shop.directory / "x"))
    assert_same(shop, bare)


def test_a_repository_that_keeps_refs_in_tables_is_listed_as_git_lists_it(shop: Workshop) -> None:
    repo = shop.directory / "tables"
    shop.sh(shop.directory, "init", "-q", "--ref-format=reftable", str(repo), ok=False)
    if not repo.exists():
        pytest.skip("this git has no reftable")
    shop.commit(repo, "file")
    shop.sh(repo, "worktree", "add", "-q", "-b", "x", str(shop.directory / "x"))
    shop.sh(repo, "worktree", "add", "-q", "--detach", str(shop.directory / "y"))
    assert_same(shop, repo)


def test_a_branch_without_commit_has_no_head(shop: Workshop) -> None:
    new = shop.directory / "new"
    shop.sh(shop.directory, "init", "-q", str(new))
    (main,) = git.list_worktrees(git.find_repo(str(new)))
    assert (main.branch, main.head) == ("main", None)


@pytest.mark.parametrize("how", ["missing", "empty", "nul", "directory", "pipe"])
@pytest.mark.parametrize("file", FILES)
def test_no_wreck_keeps_the_others_from_being_listed(shop: Workshop, file: str, how: str) -> None:
    whole, broken = shop.worker("whole"), shop.worker("broken")
    path = Path(shop.sh(broken.task.worktree, "rev-parse", "--absolute-git-dir").strip(), file)
    path.unlink()
    match how:
        case "empty":
            path.write_bytes(b"")
        case "nul":
            path.write_bytes(b"\0" * 41)
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
    repo = git.find_repo(str(shop.repo))
    listed = {found.path: found for found in git.list_worktrees(repo)}
    assert listed[whole.task.worktree].whole
    assert listed[whole.task.worktree].head == whole.task.base_commit
    if file == "gitdir":
        assert broken.task.worktree not in listed
    else:
        fine = file == "locked" or (file == "index" and how not in ("empty", "nul"))
        assert listed[broken.task.worktree].whole == fine
