"""A fault after every step of removing, restoring and sweeping, and again in the recovery."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workshop import Look, Workshop, write
from tmuxorch.model import Agent, HistoryEntry, State
from tmuxorch.service.sweep import sweep

REMOVE_STEPS = (
    *("claimed", "ended", "closed", "moved", "saved", "buried", "worktree", "branch", "files"),
)
RESTORE_STEPS = ("recorded", "worktree", "restored")
FAULTS = ("SIGKILL", "disk full", "bug")

# Acts on a worker in a process of its own, which meets the fault at one step.
DRIVER = """
import os, sys
from tmuxorch.model import Reason
from tmuxorch.service.removal import removal, restoring
from tmuxorch.service.sweep import sweep
from tmuxorch.service.context import open_context

verb, key, step, fault = sys.argv[1:]
ctx = open_context(os.environ, socket=os.path.join(os.environ["HOME"], "no-tmux"))

def checkpoint(name):
    if name == step:
        if fault == "SIGKILL":
            os.kill(os.getpid(), 9)
        raise OSError(28, "No space left on device") if fault == "disk full" else RuntimeError

ctx.checkpoint = checkpoint
if verb == "remove":
    removal.remove(ctx, ctx.store.agent(key), reason=Reason.USER)
elif verb == "restore":
    restoring.restore(ctx, ctx.settings.own(), ctx.store.history_entry(key))
else:
    for orphan in sweep.observe_orphans(ctx):
        sweep.apply(ctx, orphan)
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


def run(shop: Workshop, verb: str, key: str, step: str = "", fault: str = "") -> bool:
    """Whether it came to its end."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, verb, key, step, fault],
        env=shop.environ,
        capture_output=True,
        check=False,
        timeout=60,
    )
    expected = {"SIGKILL": -signal.SIGKILL, "": 0}.get(fault, 1)
    assert done.returncode in (0, expected), done.stderr.decode()
    return done.returncode == 0


def work(shop: Workshop, agent: Agent) -> Look:
    top = Path(agent.task.worktree)
    shop.commit(top, "done.txt")
    write(top / "README", "staged\n")
    shop.sh(top, "add", "README")
    write(top / "README", "unstaged\n")
    write(top / "new.txt")
    write(top / "secret.log")
    return shop.look(top)


def assert_removed_whole(shop: Workshop, agent: Agent, before: Look) -> None:
    """One history row, nothing left, and all of it to be had back."""
    (entry,) = shop.ctx.store.history()
    assert entry.task.id == agent.task.id
    assert shop.ctx.store.agents() == []
    assert not Path(agent.task.worktree).exists()
    assert shop.sh(shop.repo, "worktree", "list").count("\n") == 1
    assert not list(Path(shop.ctx.state_dir, "archive").rglob("*.part"))
    assert shop.look(Path(shop.restore(entry).task.worktree)) == before


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", REMOVE_STEPS)
def test_a_removal_cut_off_twice_is_carried_on(shop: Workshop, step: str, fault: str) -> None:
    agent = shop.worker()
    before = work(shop, agent)
    assert not run(shop, "remove", agent.task.id, f"remove:{step}", fault)
    second = "saved-again" if step == "buried" and fault == "SIGKILL" else step
    run(shop, "remove", agent.task.id, f"remove:{second}", fault)
    assert len(shop.ctx.store.history()) <= 1
    if shop.ctx.store.agent(agent.task.id) is not None:
        assert run(shop, "remove", agent.task.id)
    assert_removed_whole(shop, agent, before)


def test_a_removal_killed_at_one_step_after_the_other_comes_to_its_end(shop: Workshop) -> None:
    agent = shop.worker()
    before = work(shop, agent)
    for step in (*REMOVE_STEPS[:6], "saved-again", *REMOVE_STEPS[6:]):
        if shop.ctx.store.agent(agent.task.id) is not None:
            run(shop, "remove", agent.task.id, f"remove:{step}", "SIGKILL")
    assert shop.ctx.store.agent(agent.task.id) is None or run(shop, "remove", agent.task.id)
    assert_removed_whole(shop, agent, before)


def removed(shop: Workshop) -> tuple[HistoryEntry, Look]:
    agent = shop.worker()
    before = work(shop, agent)
    return shop.remove(agent), before


@pytest.mark.parametrize("fault", FAULTS[1:])
@pytest.mark.parametrize("step", RESTORE_STEPS[:2])
def test_a_restore_that_fails_leaves_nothing_but_the_save(
    shop: Workshop, step: str, fault: str
) -> None:
    entry, before = removed(shop)
    assert not run(shop, "restore", entry.task.id, f"restore:{step}", fault)
    assert shop.ctx.store.agents() == []
    assert shop.sh(shop.repo, "worktree", "list").count("\n") == 1
    assert shop.ctx.store.history_entry(entry.task.id) == entry
    back = shop.restore(entry)
    assert (back.task.name, back.task.worktree) == (entry.task.name, entry.task.worktree)
    assert shop.look(Path(back.task.worktree)) == before


@pytest.mark.parametrize("step", RESTORE_STEPS)
def test_a_restore_that_is_killed_can_be_swept_and_done_again(shop: Workshop, step: str) -> None:
    entry, before = removed(shop)
    assert not run(shop, "restore", entry.task.id, f"restore:{step}", "SIGKILL")
    (agent,) = shop.ctx.store.agents()
    if step == "restored":
        assert agent.state is State.EXITED
        assert shop.look(Path(agent.task.worktree)) == before
        return
    assert agent.state is State.CREATING
    run(shop, "sweep", "")
    assert shop.ctx.store.agents() == []
    assert shop.look(Path(shop.restore(entry).task.worktree)) == before


@pytest.mark.parametrize("step", ["sweep:adopted", *(f"remove:{s}" for s in REMOVE_STEPS)])
def test_a_sweep_that_is_killed_is_carried_on_by_the_next(shop: Workshop, step: str) -> None:
    agent = shop.worker()
    before = work(shop, agent)
    shop.forget(agent)
    assert not run(shop, "sweep", "", step, "SIGKILL")
    run(shop, "sweep", "", step, "SIGKILL")
    run(shop, "sweep", "")
    assert_removed_whole(shop, agent, before)
    assert [o for o in sweep.observe_orphans(shop.ctx) if o.kind != "file"] == []


def test_five_removals_and_sweeps_at_once_give_one_history_row(shop: Workshop) -> None:
    agent = shop.worker()
    before = work(shop, agent)

    def remove() -> None:
        argv = [sys.executable, "-c", DRIVER, "remove", agent.task.id, "", ""]
        subprocess.run(argv, env=shop.environ, capture_output=True, check=False, timeout=60)

    threads = [threading.Thread(target=remove) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_removed_whole(shop, agent, before)


@pytest.mark.parametrize("what", ["new file", "edit", "commit", "detached commit"])
def test_what_is_written_between_the_look_and_the_end_is_saved(shop: Workshop, what: str) -> None:
    agent = shop.worker()
    top = Path(agent.task.worktree)
    if what == "detached commit":
        shop.sh(top, "checkout", "-q", "--detach")
    looks: list[Look] = []

    def late(step: str) -> None:
        if step == "remove:buried" and not looks:
            aside = Path(shop.ctx.state_dir, "archive", agent.task.id, "files")
            if "commit" in what:
                shop.commit(aside, "late.txt")
            else:
                write(aside / ("late.txt" if what == "new file" else "README"), "late\n")
            looks.append(shop.look(aside))

    shop.ctx.checkpoint = late
    entry = shop.remove(agent)
    shop.ctx.checkpoint = lambda _: None
    shop.collect_garbage()
    current = shop.ctx.store.history_entry(entry.task.id)
    assert current is not None
    assert current.salvage_ref is not None
    assert shop.look(Path(shop.restore(current).task.worktree)) == looks[0]
