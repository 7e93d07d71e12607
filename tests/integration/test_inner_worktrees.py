"""What git keeps in the repository for a worker's worktree, and for linked ones inside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import World
from tests.workshop import Workshop, write
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.worktrees import find_admin_dir
from tmuxorch.adapters.store.records import open_store
from tmuxorch.core.stake import Stake, describe
from tmuxorch.model import Agent
from tmuxorch.service.care.repository_lock import mend
from tmuxorch.service.removal.work import observe_stake


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


def detached(shop: Workshop, inner: Path) -> None:
    shop.sh(inner, "checkout", "-q", "--detach")
    shop.commit(inner, "detached.txt")


def staged_and_gone(shop: Workshop, inner: Path) -> None:
    write(inner / "staged.txt", "staged, and nowhere else\n")
    shop.sh(inner, "add", "staged.txt")
    (inner / "staged.txt").unlink()


def half_merged(shop: Workshop, inner: Path) -> None:
    shop.commit(shop.repo, "README", "theirs\n")
    shop.commit(inner, "README", "ours\n")
    shop.sh(inner, "merge", "main", ok=False)


def clean(_shop: Workshop, _inner: Path) -> None:
    """Nothing but the worktree itself."""


def with_a_submodule(shop: Workshop, inner: Path) -> None:
    library = shop.directory / "library"
    library.mkdir()
    shop.sh(library, "init", "-q")
    shop.commit(library, "lib.c")
    shop.sh(inner, "submodule", "--quiet", "add", str(library), "lib")
    shop.commit(inner / "lib", "deep.c")


WORKS = [clean, detached, staged_and_gone, half_merged, with_a_submodule]


def linked(shop: Workshop, agent: Agent, path: str = "deep/sub") -> Path:
    inner = Path(agent.task.worktree, path)
    shop.sh(agent.task.worktree, "worktree", "add", "-q", str(inner))
    return inner


def prune(shop: Workshop) -> None:
    shop.sh(shop.repo, "worktree", "prune", "--expire=now")
    shop.collect_garbage()


@pytest.mark.parametrize("do", WORKS)
def test_a_linked_worktree_inside_comes_back_whole(shop: Workshop, do: object) -> None:
    agent = shop.worker()
    inner = linked(shop, agent)
    do(shop, inner)  # type: ignore[operator]
    before, outer = shop.look(inner), shop.look(Path(agent.task.worktree))
    stake = observe_stake(agent)
    assert isinstance(stake, Stake)
    assert [nested.path for nested in stake.nested] == ["deep/sub"]
    assert not stake.untracked

    entry = shop.remove(agent)
    assert "sub" not in shop.sh(shop.repo, "worktree", "list")
    prune(shop)
    again = shop.restore(entry)

    assert shop.look(inner) == before
    assert shop.look(Path(again.task.worktree)) == outer
    prune(shop)
    assert shop.look(inner) == before
    shop.sh(inner, "fsck")


@pytest.mark.parametrize("do", WORKS)
def test_it_comes_back_in_another_place_beside_one_of_its_name(shop: Workshop, do: object) -> None:
    agent = shop.worker()
    inner = linked(shop, agent)
    do(shop, inner)  # type: ignore[operator]
    before = shop.look(inner)
    entry = shop.remove(agent)
    prune(shop)
    shop.sh(shop.repo, "worktree", "add", "-q", "--detach", str(shop.directory / "sub"))
    write(Path(agent.task.worktree) / "in-the-way")

    again = shop.restore(entry)

    elsewhere = Path(again.task.worktree, "deep/sub")
    assert elsewhere != inner
    after = shop.look(elsewhere)
    assert (after.status, after.index, after.head) == (before.status, before.index, before.head)
    listed = shop.sh(shop.repo, "worktree", "list", "--porcelain")
    assert f"worktree {elsewhere}\n" in listed
    assert f"worktree {shop.directory}/sub\n" in listed


def test_restored_twice_only_one_is_on_its_branch(shop: Workshop) -> None:
    agent = shop.worker()
    inner = linked(shop, agent)
    commit = shop.commit(inner, "done.txt")
    entry = shop.remove(agent)
    shop.restore(entry)
    second = Path(shop.restore(entry, name="second").task.worktree, "deep/sub")
    assert shop.sh(inner, "symbolic-ref", "--short", "HEAD").strip() == "sub"
    assert shop.sh(second, "symbolic-ref", "-q", "HEAD", ok=False) == ""
    assert shop.sh(second, "rev-parse", "HEAD").strip() == commit
    assert shop.sh(second, "status", "--porcelain") == ""


def test_its_commits_are_told_and_kept_though_its_directory_is_gone(shop: Workshop) -> None:
    agent = shop.worker()
    inner = linked(shop, agent)
    shop.sh(inner, "checkout", "-q", "--detach")
    commit = shop.commit(inner, "precious.txt")
    subprocess.run(["rm", "-r", inner], check=True)
    stake = observe_stake(agent)
    assert isinstance(stake, Stake)
    assert [kept.oid for kept in stake.dropped] == [commit]
    entry = shop.remove(agent)
    prune(shop)
    shop.sh(shop.repo, "cat-file", "-e", f"{commit}^{{tree}}")
    shop.restore(entry)


def test_a_worktree_beside_it_stays(shop: Workshop) -> None:
    agent = shop.worker()
    beside = f"{agent.task.worktree}-beside"
    shop.sh(shop.repo, "worktree", "add", "-q", "--detach", beside)
    shop.remove(agent)
    assert f"worktree {beside}\n" in shop.sh(shop.repo, "worktree", "list", "--porcelain")


# -- settings and marks -------------------------------------------------------------------


def test_settings_and_marks_come_back_though_nothing_is_at_stake(shop: Workshop) -> None:
    shop.sh(shop.repo, "config", "extensions.worktreeConfig", "true")
    agent = shop.worker()
    top = Path(agent.task.worktree)
    shop.sh(top, "config", "--worktree", "user.name", "Somebody Else")
    shop.sh(top, "update-index", "--assume-unchanged", "README")
    shop.sh(top, "update-index", "--skip-worktree", "src/app.py")
    stake = observe_stake(agent)
    assert isinstance(stake, Stake)
    assert stake.empty, describe(stake)
    marks = shop.sh(top, "ls-files", "-v")
    entry = shop.remove(agent)
    prune(shop)
    shop.restore(entry)
    assert shop.sh(top, "ls-files", "-v") == marks
    assert shop.sh(top, "config", "--worktree", "user.name").strip() == "Somebody Else"


def test_nothing_is_saved_of_one_with_the_settings_of_the_main_worktree(shop: Workshop) -> None:
    shop.sh(shop.repo, "config", "extensions.worktreeConfig", "true")
    shop.sh(shop.repo, "config", "--worktree", "user.name", "Everybody")
    agent = shop.worker()
    own = Path(git.git_dir(agent.task.worktree))
    write(own / "config.worktree", (shop.repo / ".git/config.worktree").read_bytes())
    assert shop.remove(agent).archive is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names them so")
def test_extended_attributes_of_new_files_come_back(shop: Workshop) -> None:
    agent = shop.worker()
    new = write(Path(agent.task.worktree) / "new.txt")
    try:
        os.setxattr(new, "user.origin", b"a person")
    except OSError:
        pytest.skip("this file system has none")
    shop.restore(shop.remove(agent))
    assert os.getxattr(new, "user.origin") == b"a person"


# -- where git keeps it is recorded -------------------------------------------------------


def test_the_place_is_recorded_when_a_worker_is_made(world: World) -> None:
    made = world.new("-n", "a", "--", "sleep", "1000")
    with open_store(str(world.state))._db as db:
        (found,) = db.execute("SELECT admin FROM agents").fetchone()
    assert found == git.git_dir(made["worktree"])


def test_a_row_without_it_learns_it_when_its_repository_is_next_held(shop: Workshop) -> None:
    agent = shop.worker()
    assert agent.admin is None
    mend(shop.ctx, agent.task.repo)
    known = shop.ctx.store.agent(agent.task.id)
    assert known is not None
    assert known.admin == git.git_dir(agent.task.worktree)


def test_a_restored_worker_has_it(shop: Workshop) -> None:
    again = shop.restore(shop.remove(shop.worker()))
    assert again.admin == git.git_dir(again.task.worktree)


def test_a_recorded_place_that_serves_another_is_not_believed(shop: Workshop) -> None:
    agent, other = shop.worker(), shop.worker()
    repo = git.find_repo(agent.task.repo)
    own = git.git_dir(agent.task.worktree)
    elsewhere = git.git_dir(other.task.worktree)
    assert find_admin_dir(repo, agent.task.worktree, recorded=own) == own
    assert find_admin_dir(repo, agent.task.worktree, recorded=elsewhere) == own
    assert find_admin_dir(repo, agent.task.worktree, recorded=f"{own}-gone") == own
