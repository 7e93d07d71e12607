"""Whatever lies in a worktree, removal and restore give it back as a raw walk saw it."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rawtree import RawTree, differences, read_tree
from tests.works import CONFIGS, FILTER, WORKS, Bench
from tests.workshop import Workshop, write
from tmuxorch.core.stake import Stake
from tmuxorch.model import Agent
from tmuxorch.service.removal.work import observe_stake

SOME_WORK = st.lists(st.sampled_from(sorted(WORKS)), min_size=1, max_size=6)
CONFIG = st.sampled_from(sorted(CONFIGS))
SEED = st.integers(0, 2**32)
thorough = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@contextmanager
def workshop(config: str) -> Iterator[Workshop]:
    """A repository with this setting, and with the files that the kinds of work know."""
    with pytest.MonkeyPatch.context() as patch:
        shop = Workshop.make(Path(tempfile.mkdtemp(prefix="to-raw-")), patch)
        try:
            shop.sh(shop.repo, "config", *FILTER)
            shop.commit(shop.repo, "src/lib.c", "int x;\nint y;\n")
            shop.sh(shop.repo, "config", *CONFIGS[config])
            yield shop
        finally:
            shop.close()


def work(shop: Workshop, names: list[str], seed: int) -> Agent:
    agent = shop.worker()
    bench = Bench(Path(agent.task.worktree), shop.environ, random.Random(seed))
    for name in names:
        WORKS[name](bench)
    return agent


def look(shop: Workshop, top: str | Path) -> RawTree:
    return read_tree(top, shop.environ)


def assert_removal_and_restore_give_it_back(shop: Workshop, agent: Agent) -> None:
    before = look(shop, agent.task.worktree)
    entry = shop.remove(agent)
    assert not Path(agent.task.worktree).exists()
    shop.collect_garbage()
    after = look(shop, shop.restore(entry).task.worktree)
    assert list(differences(before, after)) == []


def assert_nothing_at_stake_is_true(shop: Workshop, agent: Agent) -> None:
    """Where removal would save nothing, git alone makes all of it again."""
    stake = observe_stake(agent)
    assert isinstance(stake, Stake)
    if not stake.empty:
        return
    before = look(shop, agent.task.worktree)
    assert before.own is not None
    again = shop.directory / "again"
    commit = before.own.head.split()[1].decode()
    shop.sh(shop.repo, "worktree", "add", "-q", "--detach", str(again), commit)
    fresh = look(shop, again)
    assert fresh.own is not None
    assert (fresh.files, fresh.own.index) == (before.files, before.own.index)
    reachable = set(shop.sh(shop.repo, "rev-list", "--objects", "--all").split())
    assert {name.decode() for name in before.own.needed} <= reachable


@pytest.mark.parametrize("name", sorted(WORKS))
def test_one_kind_of_work_comes_back(name: str) -> None:
    with workshop("plain") as shop:
        agent = work(shop, [name], seed=1)
        assert_nothing_at_stake_is_true(shop, agent)
        assert_removal_and_restore_give_it_back(shop, agent)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ("no-filemode", "modes"),
        ("no-symlinks", "links"),
        ("ignorecase", "other-case"),
        ("autocrlf", "line-endings"),
        ("autocrlf-input", "line-endings"),
    ],
)
def test_what_a_setting_hides_from_git_comes_back(config: str, name: str) -> None:
    with workshop(config) as shop:
        agent = work(shop, [name], seed=1)
        assert_nothing_at_stake_is_true(shop, agent)
        assert_removal_and_restore_give_it_back(shop, agent)


@thorough
@given(CONFIG, SOME_WORK, SEED)
def test_any_mixture_of_work_comes_back(config: str, names: list[str], seed: int) -> None:
    with workshop(config) as shop:
        agent = work(shop, names, seed)
        assert_nothing_at_stake_is_true(shop, agent)
        assert_removal_and_restore_give_it_back(shop, agent)


@thorough
@given(CONFIG, SOME_WORK, SOME_WORK, SEED)
def test_a_restored_worker_can_go_on_and_be_removed_again(
    config: str, first: list[str], then: list[str], seed: int
) -> None:
    with workshop(config) as shop:
        entry = shop.remove(work(shop, first, seed))
        back = shop.restore(entry)
        bench = Bench(Path(back.task.worktree), shop.environ, random.Random(seed + 1))
        for name in then:
            WORKS[name](bench)
        assert_removal_and_restore_give_it_back(shop, back)


def test_a_copied_file_whose_original_changed_comes_back_as_it_was() -> None:
    with workshop("plain") as shop:
        write(shop.repo / ".env", "first\n")
        agent = shop.worker(copied=(".env",))
        write(Path(agent.task.worktree) / ".env", "first\n")
        write(shop.repo / ".env", "second\n")
        assert_removal_and_restore_give_it_back(shop, agent)
