"""Sweep over a repository prepared with every trap, in this process; the windows are in e2e."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import wait_for
from tests.workshop import Workshop, write
from tmuxorch.model import Agent, Reason, State
from tmuxorch.service.sweep import sweep
from tmuxorch.service.sweep.sweep import Disposal, Orphan, Thing


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


def orphaned(shop: Workshop, name: str) -> Agent:
    """A worker whose record was lost, as with a store from an old backup."""
    agent = shop.worker(name)
    shop.forget(agent)
    return agent


def find(shop: Workshop, name: str | Path, **options: int) -> Orphan:
    (found,) = [o for o in sweep.observe_orphans(shop.ctx, **options) if o.name == str(name)]
    return found


def apply_all(shop: Workshop, **options: int) -> list[Orphan]:
    found = sweep.observe_orphans(shop.ctx, **options)
    return [sweep.apply(shop.ctx, orphan, **options) for orphan in found]


def dead_owner() -> object:
    from tmuxorch.adapters.system import procfs

    child = subprocess.Popen(["sleep", "100"])
    identity = procfs.identify(child.pid)
    child.kill()
    child.wait()
    return identity


def test_where_all_is_well_nothing_is_found(shop: Workshop) -> None:
    agent = shop.worker()
    write(Path(agent.task.worktree) / "new.txt")
    shop.remove(shop.worker())
    wait_for(lambda: sweep.observe_orphans(shop.ctx) == [])


def test_a_worktree_without_record_is_saved_and_can_be_restored(shop: Workshop) -> None:
    agent = orphaned(shop, "lost")
    top = Path(agent.task.worktree)
    write(top / "new.txt", "precious\n")
    write(top / "secret.log", "ignored\n")
    before = shop.look(top)
    found = find(shop, top)
    assert (found.kind, found.action, found.repo) == (
        Thing.WORKTREE,
        Disposal.SALVAGE,
        agent.task.repo,
    )
    assert found.bytes is not None
    assert found.bytes > len("precious\n")
    assert top.exists(), "a look changes nothing"
    assert sweep.apply(shop.ctx, found).done
    assert not top.exists()
    (entry,) = shop.ctx.store.history()
    assert (entry.reason, entry.task.name, entry.task.id) == (Reason.SWEPT, "lost", agent.task.id)
    assert shop.look(Path(shop.restore(entry).task.worktree)).files == before.files


def test_commits_of_a_detached_head_without_record_are_saved(shop: Workshop) -> None:
    agent = orphaned(shop, "lost")
    shop.sh(agent.task.worktree, "checkout", "-q", "--detach")
    commit = shop.commit(Path(agent.task.worktree), "done.txt")
    apply_all(shop)
    shop.collect_garbage()
    shop.sh(shop.repo, "cat-file", "-e", commit)
    assert not Path(agent.task.worktree).exists()


def test_one_that_somebody_works_in_is_kept(shop: Workshop) -> None:
    agent = orphaned(shop, "busy")
    with subprocess.Popen(["sleep", "100"], cwd=agent.task.worktree) as process:
        wait_for(lambda: os.path.exists(f"/proc/{process.pid}/cwd"))
        found = find(shop, agent.task.worktree)
        assert found.action is Disposal.KEEP
        assert str(process.pid) in found.reason
        assert not sweep.apply(shop.ctx, found).done
        assert Path(agent.task.worktree).is_dir()
        process.kill()


def test_hand_made_worktrees_and_those_of_another_store_are_not_even_shown(
    shop: Workshop,
) -> None:
    root = Path(shop.ctx.worktrees_dir) / "repo"
    shop.worker()
    for name, reason in (("plain", None), ("locked", "mine"), ("other", "tmuxorch:other:abc")):
        shop.sh(shop.repo, "worktree", "add", "-q", "-b", name, str(root / name))
        if reason:
            shop.sh(shop.repo, "worktree", "lock", "--reason", reason, str(root / name))
    moved = shop.directory / "moved"
    shop.sh(shop.repo, "worktree", "add", "-q", str(moved))
    moved.rename(shop.directory / "elsewhere")
    assert sweep.observe_orphans(shop.ctx) == []
    apply_all(shop)
    assert shop.sh(shop.directory / "elsewhere", "status", "--porcelain") == ""
    assert len(shop.sh(shop.repo, "worktree", "list").splitlines()) == 6


def test_a_record_without_directory_goes_and_its_commits_stay(shop: Workshop) -> None:
    agent = shop.worker("gone")
    commit = shop.commit(Path(agent.task.worktree), "done.txt")
    subprocess.run(["rm", "-rf", agent.task.worktree], check=True)
    assert find(shop, agent.task.worktree).action is Disposal.REMOVE
    assert [orphan.done for orphan in apply_all(shop)] == [True]
    assert shop.ctx.store.agents() == []
    assert shop.sh(shop.repo, "rev-parse", agent.task.branch).strip() == commit
    assert [entry.reason for entry in shop.ctx.store.history()] == [Reason.SWEPT]


def test_a_missing_disk_is_not_taken_for_missing_directories(shop: Workshop) -> None:
    agent = shop.worker("away")
    os.rename(shop.ctx.worktrees_dir, shop.directory / "unmounted")
    assert find(shop, agent.task.worktree).action is Disposal.KEEP
    apply_all(shop)
    os.rename(shop.directory / "unmounted", shop.ctx.worktrees_dir)
    assert shop.ctx.store.agent(agent.task.id) is not None
    assert Path(agent.task.worktree, "README").exists()


@pytest.mark.parametrize("lost", ["", "index"])
def test_a_half_made_worktree_goes(shop: Workshop, lost: str) -> None:
    agent = orphaned(shop, "half")
    own = Path(shop.sh(agent.task.worktree, "rev-parse", "--absolute-git-dir").strip())
    write(own / "locked", "initializing")
    if lost:
        (own / lost).unlink()
    assert find(shop, agent.task.worktree).action in (Disposal.REMOVE, Disposal.SALVAGE)
    apply_all(shop)
    assert not Path(agent.task.worktree).exists()
    assert not own.exists()


@pytest.mark.parametrize("state", [State.CREATING, State.REMOVING])
def test_what_a_dead_owner_left_half_done_is_carried_on(shop: Workshop, state: State) -> None:
    agent = shop.worker("cut", state=state, owner=dead_owner())
    write(Path(agent.task.worktree) / "new.txt")
    assert find(shop, agent.task.worktree).action is Disposal.SALVAGE
    apply_all(shop)
    assert shop.ctx.store.agents() == []
    (entry,) = shop.ctx.store.history()
    assert entry.salvage_ref is not None
    expected = Reason.CREATE_FAILED if state is State.CREATING else Reason.USER
    assert entry.reason is expected


def test_what_a_live_owner_is_doing_is_left_to_it(shop: Workshop) -> None:
    from tmuxorch.adapters.system import procfs

    shop.worker("busy", state=State.CREATING, owner=procfs.identify_self())
    assert sweep.observe_orphans(shop.ctx) == []


def test_a_directory_git_does_not_know_goes_only_if_it_is_empty(shop: Workshop) -> None:
    root = Path(shop.ctx.worktrees_dir) / "repo"
    (root / "empty-1234").mkdir(parents=True)
    write(root / "full-1234" / "file")
    assert find(shop, root / "empty-1234").action is Disposal.REMOVE
    full = find(shop, root / "full-1234")
    assert (full.action, full.command) == (Disposal.KEEP, f"rm -r {root}/full-1234")
    apply_all(shop)
    assert not (root / "empty-1234").exists()
    assert (root / "full-1234" / "file").exists()


def test_a_branch_goes_once_its_work_is_merged(shop: Workshop) -> None:
    agent = shop.worker("merged")
    shop.commit(Path(agent.task.worktree), "done.txt")
    kept = shop.worker("open")
    shop.commit(Path(kept.task.worktree), "open.txt")
    moved = shop.worker("moved")
    for worker in (agent, kept, moved):
        shop.remove(worker)
    shop.sh(shop.repo, "branch", moved.task.branch)  # made by a person under the old name
    assert [o for o in sweep.observe_orphans(shop.ctx) if o.id == agent.task.branch] == []
    shop.sh(shop.repo, "merge", "-q", "--no-edit", agent.task.branch)
    found = find(shop, agent.task.branch)
    assert (found.kind, found.action) == (Thing.BRANCH, Disposal.REMOVE)
    apply_all(shop)
    branches = shop.sh(shop.repo, "branch", "--format=%(refname:short)").split()
    assert agent.task.branch not in branches
    assert {"main", kept.task.branch} <= set(branches)


def test_a_branch_that_was_to_be_kept_is_kept(shop: Workshop) -> None:
    agent = shop.worker("mine", keep_branch=True)
    theirs = shop.worker("theirs", branch="feature", branch_made=True)
    shop.remove(agent)
    shop.sh(shop.repo, "branch", "feature-2")
    used = shop.worker("used", branch="feature-2", branch_made=False)
    shop.remove(used)
    shop.remove(theirs)
    wait_for(lambda: sweep.observe_orphans(shop.ctx) == [])
    branches = shop.sh(shop.repo, "branch", "--format=%(refname:short)").split()
    assert {agent.task.branch, "feature-2"} <= set(branches)


def test_stale_files_go_and_saved_ones_stay(shop: Workshop) -> None:
    state, trees = Path(shop.ctx.state_dir), Path(shop.ctx.worktrees_dir)
    agent = shop.worker("w")
    write(Path(agent.task.worktree) / "secret.log")
    entry = shop.remove(agent)
    other = shop.worker("other")
    stale = [
        write(state / "run" / "0123456789ab" / "launch"),
        write(state / "run" / other.task.id / "task.999999999.tmp"),
        write(state / "archive" / "0123456789ab.tar.part"),
        write(state / "locks" / "repo-0123456789abcdef.lock"),
        write(trees / "repo" / ".trash" / entry.task.id / "file"),
    ]
    old = time.time() - 100_000
    os.utime(state / "locks" / "repo-0123456789abcdef.lock", (old, old))
    kept = [
        write(state / "run" / other.task.id / "screen"),
        write(state / "archive" / "fedcba987654.tar"),
        write(trees / "repo" / ".trash" / "fedcba987654" / "file"),
        Path(str(entry.archive)),
        state / "tmuxorch.db",
    ]
    by_name = {o.name: o for o in sweep.observe_orphans(shop.ctx)}
    assert by_name[str(kept[1])].action is Disposal.KEEP
    assert by_name[str(kept[2].parent)].action is Disposal.KEEP
    assert all(path.exists() for path in stale)
    apply_all(shop)
    assert [path for path in stale if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []
    assert {o.action for o in sweep.observe_orphans(shop.ctx)} == {Disposal.KEEP}


def test_the_safe_part_leaves_all_that_could_matter(shop: Workshop) -> None:
    orphan = orphaned(shop, "lost")
    gone = shop.worker("gone")
    subprocess.run(["rm", "-rf", gone.task.worktree], check=True)
    entry = shop.remove(shop.worker())
    trash = write(Path(shop.ctx.worktrees_dir) / "repo" / ".trash" / entry.task.id / "file")
    run = write(Path(shop.ctx.state_dir) / "run" / "0123456789ab" / "launch")
    done = sweep.sweep_safe(shop.ctx, set())
    assert {o.name for o in done} == {str(trash.parent), str(run.parent)}
    assert not trash.exists()
    assert not run.exists()
    assert Path(orphan.task.worktree).exists()
    assert shop.ctx.store.agent(gone.task.id) is not None


def test_a_process_of_a_worker_that_is_gone_is_shown_and_left_alone(shop: Workshop) -> None:
    entry = shop.remove(shop.worker())
    env = {**shop.environ, "TMUXORCH_AGENT_ID": entry.task.id}
    foreign = {**env, "TMUXORCH_AGENT_ID": "a" * 12}
    script = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(100)"]
    with (
        subprocess.Popen(script, env=env, stdout=subprocess.PIPE) as ours,
        subprocess.Popen(script, env=foreign, stdout=subprocess.PIPE) as theirs,
    ):
        for process in (ours, theirs):
            assert process.stdout is not None
            assert process.stdout.readline()
        found = find(shop, str(ours.pid))
        assert (found.kind, found.action) == (Thing.PROCESS, Disposal.REPORT)
        assert found.command == f"kill {ours.pid}"
        assert [o for o in sweep.observe_orphans(shop.ctx) if o.pid == theirs.pid] == []
        assert not sweep.apply(shop.ctx, found).done
        assert ours.poll() is None
        for process in (ours, theirs):
            process.kill()


def test_old_history_goes_unless_its_save_holds_work(shop: Workshop) -> None:
    merged = shop.worker("merged")
    shop.commit(Path(merged.task.worktree), "done.txt")
    holding = shop.worker("holding")
    write(Path(holding.task.worktree) / "new.txt")
    ignoring = shop.worker("ignoring")
    write(Path(ignoring.task.worktree) / "a.log")
    plain = shop.worker("plain")
    entries = {agent.task.name: shop.remove(agent) for agent in (merged, holding, ignoring, plain)}
    assert entries["merged"].salvage_ref
    shop.sh(shop.repo, "merge", "-q", "--no-edit", merged.task.branch)
    assert {orphan.kind for orphan in apply_all(shop, keep_days=3)} == {Thing.BRANCH}
    shop.ctx.clock = lambda: time.time() + 4 * 86_400
    assert find(shop, entries["holding"].task.id, keep_days=3).action is Disposal.KEEP
    assert "not committed" in find(shop, entries["holding"].task.id, keep_days=3).reason
    apply_all(shop, keep_days=3)
    assert {entry.task.name for entry in shop.ctx.store.history()} == {"holding", "ignoring"}
    refs = shop.sh(shop.repo, "for-each-ref", "--format=%(refname)", "refs/tmuxorch").split()
    assert {ref.split("/")[3] for ref in refs} == {
        entries["holding"].task.id,
        entries["ignoring"].task.id,
    }


def test_sweeping_twice_finds_nothing_the_second_time(shop: Workshop) -> None:
    for name in ("one", "two"):
        write(Path(orphaned(shop, name).task.worktree) / "new.txt")
    first = apply_all(shop)
    assert [orphan.done for orphan in first] == [True, True]
    again = [sweep.apply(shop.ctx, orphan) for orphan in first]
    assert all(orphan.done for orphan in again)
    wait_for(lambda: sweep.observe_orphans(shop.ctx) == [])
    assert len(shop.ctx.store.history()) == 2


@pytest.fixture
def undeletable(shop: Workshop) -> Iterator[Path]:
    """A directory in the trash in which something is mounted, so that it cannot go."""
    entry = shop.remove(shop.worker("stuck"))
    trash = Path(shop.ctx.worktrees_dir) / "repo" / ".trash" / entry.task.id
    wait_for(lambda: not trash.exists())
    mounted = trash / "mounted"
    mounted.mkdir(parents=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "tmpfs", mounted], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode().strip()}")
    write(mounted / "theirs")
    yield trash
    subprocess.run(["umount", "-l", mounted], check=False, capture_output=True)


def test_what_cannot_be_deleted_stops_no_other_and_is_told_once(
    shop: Workshop, undeletable: Path
) -> None:
    entry = shop.remove(shop.worker("other"))
    other = write(undeletable.parent / entry.task.id / "file").parent
    told: set[str] = set()
    first = {Path(o.name): o for o in sweep.sweep_safe(shop.ctx, told)}
    assert {path: orphan.done for path, orphan in first.items()} == {
        undeletable: False,
        other: True,
    }
    assert "could not be deleted" in first[undeletable].reason
    assert (undeletable / "mounted" / "theirs").exists(), "what is mounted is not emptied"
    assert sweep.sweep_safe(shop.ctx, told) == []
    subprocess.run(["umount", undeletable / "mounted"], check=True)
    assert [orphan.done for orphan in sweep.sweep_safe(shop.ctx, told)] == [True]
    assert not undeletable.exists()


def test_a_directory_deeper_than_any_stack_is_measured_and_swept(shop: Workshop) -> None:
    entry = shop.remove(shop.worker())
    trash = Path(shop.ctx.worktrees_dir) / "repo" / ".trash" / entry.task.id
    wait_for(lambda: not trash.exists())
    trash.mkdir()
    before = os.getcwd()
    os.chdir(trash)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(before)
    assert [orphan.done for orphan in sweep.sweep_safe(shop.ctx, set())] == [True]
    assert not trash.exists()


def count_git_calls(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> int:
    calls = shop.directory / "calls"
    calls.write_text("")
    script = f'#!/bin/sh\necho >> {calls}\nexec {shutil.which("git")} "$@"\n'
    wrapper = write(shop.directory / "bin" / "git", script)
    wrapper.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
        sweep.observe_orphans(shop.ctx)
    return len(calls.read_text())


def test_how_often_git_is_asked_does_not_grow_with_the_history(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(count: int) -> None:
        for _ in range(count):
            agent = shop.worker()
            shop.commit(Path(agent.task.worktree), "done.txt")
            shop.remove(agent)

    remove(2)
    few = count_git_calls(shop, monkeypatch)
    remove(6)
    assert count_git_calls(shop, monkeypatch) == few
