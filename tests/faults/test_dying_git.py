"""One git after the other dies under a command: nothing is lost, nothing is left, no work stops.

`TMUXORCH_ALL_GITS` set makes every single one of them die, else some of them do.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import World, wait_for
from tests.workshop import Look, Workshop, write
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import Agent, HistoryEntry
from tmuxorch.service.landing import merging
from tmuxorch.service.landing.merging import How

# First on the PATH. Each call takes the next free number; those with the numbers in DYING_AT die
# by themselves: before they did anything, at the first byte of a file that they would write
# (so that a lock or half a file stays), or when all is done and only their status is missing.
WRAPPER = """#!/bin/sh
n=1
set -C
until true 2>/dev/null >"$DYING_DIRECTORY/$n"; do n=$((n + 1)); done
set +C
printf '%s' "$*" >"$DYING_DIRECTORY/$n"
case " $DYING_AT " in *" $n "*)
    case $DYING_HOW in
    before) kill -9 $$ ;;
    writing) ulimit -c 0; ulimit -f 0 ;;
    after) REAL_GIT "$@"; kill -9 $$ ;;
    esac ;;
esac
exec REAL_GIT "$@"
"""
WHERE = re.compile(r"(-C|-c) \S+ |--(git-dir|work-tree)=\S+ ")
Put = Callable[[str, str], None]
HOWS = ("before", "writing", "after")
SAMPLES = 4


class Dying:
    """A git that dies when it is told to, for all that is started with a certain environment."""

    def __init__(self, directory: Path, put: Put, plain: str) -> None:
        real = shutil.which("git", path=plain)
        assert real is not None
        self.calls = directory / "calls"
        self.put = put
        self.plain = plain
        self.path = f"{directory / 'bin'}{os.pathsep}{self.plain}"
        write(directory / "bin" / "git", WRAPPER.replace("REAL_GIT", real)).chmod(0o755)

    def begin(self, how: str = "", *at: int) -> None:
        """Count from 1 from now on; the calls with these numbers die."""
        shutil.rmtree(self.calls, ignore_errors=True)
        self.calls.mkdir()
        self.put("DYING_DIRECTORY", str(self.calls))
        self.put("DYING_HOW", how)
        self.put("DYING_AT", " ".join(map(str, at)))
        self.put("PATH", self.path)

    def end(self) -> int:
        """How many gits there were; none dies any more."""
        self.put("PATH", self.plain)
        return len(list(self.calls.iterdir()))

    def told(self) -> str:
        """What was called, for the message of a failure."""
        calls = sorted(self.calls.iterdir(), key=lambda path: int(path.name))
        return "\n".join(f"{p.name}: {WHERE.sub('', p.read_text())}" for p in calls)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


@pytest.fixture
def dying(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Dying:
    return Dying(shop.directory, monkeypatch.setenv, os.environ["PATH"])


def numbers(last: int, how: str, samples: int = SAMPLES) -> list[int]:
    if "TMUXORCH_ALL_GITS" in os.environ:
        return list(range(1, last + 1))
    return sorted(random.Random(how).sample(range(1, last + 1), samples))


def worker(shop: Workshop) -> tuple[Agent, Look]:
    """One with every kind of work, on commits of its own and beside them."""
    agent = shop.worker()
    top = Path(agent.task.worktree)
    shop.commit(top, "done.txt")
    shop.commit(top, "dropped.txt")
    shop.sh(top, "reset", "-q", "--hard", "HEAD^")
    write(top / "README", "staged\n")
    shop.sh(top, "add", "README")
    write(top / "README", "unstaged\n")
    write(top / "new.txt")
    write(top / "secret.log")
    return agent, shop.look(top)


def assert_nothing_left(shop: Workshop, told: str) -> None:
    """No worker, and nothing of one in the repository but its saves."""
    assert shop.ctx.store.agents() == [], told
    assert shop.sh(shop.repo, "worktree", "list").count("\n") == 1, told
    assert shop.sh(shop.repo, "fsck", "--no-dangling") == "", told
    own = shop.repo / ".git"
    assert list(own.rglob("*.lock")) == [], told
    assert list(own.glob("**/tmuxorch-*")) == [], told
    found = (shop.directory / "worktrees").glob("*/*")
    assert [path for path in found if path.name != ".trash"] == [], told


def branches(shop: Workshop) -> set[str]:
    asked = ("for-each-ref", "--format=%(refname:short)", "refs/heads/tmuxorch")
    return set(shop.sh(shop.repo, *asked).split())


def removed_under(shop: Workshop, dying: Dying, agent: Agent, how: str, *at: int) -> str:
    """Remove it while these gits die, which must not stop it; what happened."""
    dying.begin(how, *at)
    try:
        shop.remove(agent)
    finally:
        dying.end()
        told = f"git {at} of a removal died {how}\n{dying.told()}"
        print(told)
    return told


@pytest.mark.timeout(300)
@pytest.mark.parametrize("deaths", [1, 3])
@pytest.mark.parametrize("how", HOWS)
def test_a_removal_comes_to_its_end_whichever_git_dies(
    shop: Workshop, dying: Dying, how: str, deaths: int
) -> None:
    """After three deaths nothing is asked again, and the whole step is repeated."""
    agent, _ = worker(shop)
    dying.begin()
    shop.remove(agent)
    for n in numbers(dying.end(), f"{how}{deaths}", 2):
        agent, before = worker(shop)
        had = {entry.task.id for entry in shop.ctx.store.history()}
        told = removed_under(shop, dying, agent, how, *range(n, n + deaths))
        (entry,) = [e for e in shop.ctx.store.history() if e.task.id not in had]
        assert entry.task.id == agent.task.id, told
        assert entry.head_commit, told
        assert_nothing_left(shop, told)
        back = shop.restore(entry)
        assert shop.look(Path(back.task.worktree)) == before, told
        shop.remove(back)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", HOWS)
def test_a_removal_of_no_work_leaves_no_branch_whichever_git_dies(
    shop: Workshop, dying: Dying, how: str
) -> None:
    shop.sh(shop.repo, "branch", "another")
    agent = shop.worker()
    shop.sh(shop.repo, "pack-refs", "--all")
    dying.begin()
    shop.remove(agent)
    for n in numbers(dying.end(), how):
        agent = shop.worker()
        shop.sh(shop.repo, "pack-refs", "--all")
        told = removed_under(shop, dying, agent, how, n)
        entry = shop.ctx.store.history_entry(agent.task.id)
        assert entry is not None, told
        assert not entry.branch_kept, told
        assert branches(shop) == set(), told
        shop.sh(shop.repo, "branch", "-m", "another", f"another-{n}")
        shop.sh(shop.repo, "branch", "-m", f"another-{n}", "another")
        assert_nothing_left(shop, told)


def remove_with_branch(shop: Workshop, agent: Agent, there: set[str]) -> None:
    """Have no branches afterwards but those that were there before."""
    shop.remove(agent)
    for branch in branches(shop) - there:
        shop.sh(shop.repo, "branch", "-q", "-D", branch)


def removed(shop: Workshop) -> tuple[HistoryEntry, Look]:
    agent, before = worker(shop)
    return shop.remove(agent), before


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("how", HOWS)
def test_a_restore_is_whole_or_nothing_whichever_gits_die(
    shop: Workshop, dying: Dying, how: str, is_kept: bool
) -> None:
    """Twice in one attempt, so that taking it back is disturbed as well."""
    entry, before = removed(shop)
    if is_kept:  # its branch is elsewhere now, so that another is made
        shop.sh(shop.repo, "branch", "-f", entry.task.branch, "HEAD")
    there = branches(shop)
    dying.begin()
    back = shop.restore(entry)
    count = dying.end()
    remove_with_branch(shop, back, there)
    dice = random.Random(how)
    for n in numbers(count, how):
        assert branches(shop) == there
        second = dice.randint(n + 1, n + 8)
        dying.begin(how, n, n + 1, n + 2, second)
        with suppress(TmuxorchError):
            shop.restore(entry)
        dying.end()
        told = f"git {n}, the next two and {second} of a restore died {how}\n{dying.told()}"
        if not shop.ctx.store.agents():
            assert_nothing_left(shop, told)
            assert branches(shop) == there, told
            shop.restore(entry)
        (back,) = shop.ctx.store.agents()
        look = shop.look(Path(back.task.worktree))
        head = look.head.replace(f"heads/{back.task.branch}\n", f"heads/{entry.task.branch}\n")
        assert replace(look, head=head) == before, told
        remove_with_branch(shop, back, there)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("into", ["main", "integration"])
@pytest.mark.parametrize("how", ["before", "writing"])
def test_a_merge_is_done_once_whichever_git_dies(
    shop: Workshop, dying: Dying, how: str, into: str
) -> None:
    """Into a branch that is checked out, and into one that is not."""

    def merge(agent: Agent) -> None:
        merging.merge(shop.ctx, agent, how=How.SQUASH, into=into, commit=True)

    shop.sh(shop.repo, "branch", "integration")
    first = shop.worker()
    write(Path(first.task.worktree) / "first.txt")
    dying.begin()
    merge(first)
    for n in numbers(dying.end(), how):
        before = shop.commit(shop.repo, f"meanwhile-{n}.txt")
        shop.sh(shop.repo, "update-ref", f"refs/heads/{into}", "HEAD")
        agent = shop.worker()
        write(Path(agent.task.worktree) / f"work-{n}.txt", "work\n")
        dying.begin(how, n)
        with suppress(TmuxorchError):
            merge(agent)
        dying.end()
        told = f"git {n} of a merge died {how}\n{dying.told()}"
        merge(agent)
        assert shop.sh(shop.repo, "rev-list", "--count", f"{before}..{into}").strip() == "1", told
        assert shop.sh(shop.repo, "show", f"{into}:work-{n}.txt") == "work\n", told
        shop.remove(agent)
        assert list((shop.repo / ".git").rglob("*.lock")) == [], told


def run(world: World, dying: Dying, how: str, n: int, *args: str) -> tuple[bool, str]:
    """Whether the command came to its end, and what happened."""
    dying.begin(how, n)
    done = world.run(*args, ok=False)
    dying.end()
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode == 0, f"git {n} of {args} died {how}: {done.stderr}\n{dying.told()}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", HOWS)
def test_a_worker_is_made_or_nothing_whichever_git_dies(world: World, how: str) -> None:
    dying = Dying(world.directory, world.environ.__setitem__, world.environ["PATH"])
    new = ("new", "--no-wait", "-n", "a", "--", "sleep", "100000")
    dying.begin()
    world.run(*new)
    for n in numbers(dying.end(), how, 1):
        world.run("rm", "-y", "a")
        made, told = run(world, dying, how, n, *new)
        if not made:
            assert world.json("ls") == [], told
            assert world.json("history", "--reason", "create_failed") != [], told
            world.assert_nothing_left()
            world.run(*new)
        assert [agent["state"] for agent in world.json("ls")] == ["running"], told


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", HOWS)
def test_the_watcher_removes_what_holds_nothing_whichever_git_dies(world: World, how: str) -> None:
    """In that pass or the next one, with no quarantine in between."""
    dying = Dying(world.directory, world.environ.__setitem__, world.environ["PATH"])

    def end_one() -> None:
        made = world.new("--no-wait", "-n", "a", "--", "true")
        wait_for(lambda: world.processes(made["id"]) == [], what="its end")

    end_one()
    dying.begin()
    world.run("watch", "--once")
    for n in numbers(dying.end(), how, 1):
        assert world.json("ls") == []
        end_one()
        _, told = run(world, dying, how, n, "watch", "--once")
        assert {agent["state"] for agent in world.json("ls")} <= {"exited"}, told
        world.run("watch", "--once")
        assert world.json("ls") == [], told
        world.assert_nothing_left()
