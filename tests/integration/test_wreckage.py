"""What killed gits and power cuts leave in a repository: ours is mended, theirs is told."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workshop import Workshop, write
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.call import CALLER
from tmuxorch.adapters.system import procfs
from tmuxorch.errors import GitFailed
from tmuxorch.model import Agent, ProcessId, State
from tmuxorch.service.care import doctor, repair
from tmuxorch.service.care.repository_lock import mend
from tmuxorch.service.sweep import sweep
from tmuxorch.service.sweep.sweep import Disposal, Orphan

OLD_S = 1000.0
FILES = ("gitdir", "HEAD", "commondir", "locked", "index")
# The order in which `git worktree add` writes.
WRITES = ("locked", "gitdir", "HEAD", "commondir", "index")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


def admin_of(shop: Workshop, worktree: str | Path) -> Path:
    return Path(shop.sh(worktree, "rev-parse", "--absolute-git-dir").strip())


def age(*paths: Path, seconds: float = OLD_S) -> None:
    then = time.time() - seconds
    for path in paths:
        os.utime(path, (then, then), follow_symlinks=False)


def dead() -> str:
    """The identity of a process that has ended."""
    child = subprocess.Popen(["sleep", "100"])
    identity = procfs.identify(child.pid)
    child.kill()
    child.wait()
    return str(identity)


def assert_git_works(shop: Workshop) -> None:
    for words in ("worktree list", "branch", "fsck", "gc -q", "pack-refs --all"):
        shop.sh(shop.repo, *words.split())


def find(shop: Workshop, path: Path) -> Orphan:
    (found,) = [o for o in sweep.observe_orphans(shop.ctx) if o.path == str(path)]
    return found


@pytest.mark.parametrize(
    ("file", "how"),
    [
        *((file, how) for file in FILES for how in ("missing", "empty") if file != "locked"),
        # A person unlocks worktrees and deletes links too, but does not empty them.
        *((file, "empty") for file in ("locked", ".git")),
    ],
)
def test_a_worker_with_a_broken_file_is_removed_and_its_work_is_saved(
    shop: Workshop, file: str, how: str
) -> None:
    agent, other = shop.worker("broken"), shop.worker("other")
    write(Path(agent.task.worktree) / "new.txt", "precious\n")
    path = (
        Path(agent.task.worktree) if file == ".git" else admin_of(shop, agent.task.worktree)
    ) / file
    path.unlink()
    if how == "empty":
        path.touch()
    entry = shop.remove(agent)
    assert entry.salvage_ref is not None
    assert not Path(agent.task.worktree).exists()
    assert_git_works(shop)
    back = shop.restore(entry)
    assert Path(back.task.worktree, "new.txt").read_text() == "precious\n"
    assert shop.sh(other.task.worktree, "status", "--porcelain") == ""


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("made", range(len(WRITES)))
def test_a_creation_cut_off_at_any_write_is_undone(
    shop: Workshop, made: int, *, empty: bool
) -> None:
    """The first `made` files were written; with `empty` the next was opened too."""
    owner = ProcessId.parse(dead())
    agent = shop.worker("cut", state=State.CREATING, owner=owner)
    top = Path(agent.task.worktree)
    admin = admin_of(shop, top)
    for name in WRITES[made:]:
        (admin / name).unlink()
    if empty:
        (admin / WRITES[made]).touch()
    if made < WRITES.index("commondir"):
        subprocess.run(["rm", "-r", top / "src", top / "README"], check=True)
    if made <= WRITES.index("gitdir"):
        subprocess.run(["rm", "-r", top], check=True)
    for orphan in sweep.observe_orphans(shop.ctx):
        sweep.apply(shop.ctx, orphan)
    assert shop.ctx.store.agents() == []
    assert not top.exists()
    assert not admin.exists()
    assert_git_works(shop)
    shop.worker("cut")


def test_what_git_keeps_of_a_worktree_that_is_set_aside_is_finished(shop: Workshop) -> None:
    agent = shop.worker("aside")
    write(Path(agent.task.worktree) / "README", "staged\n")
    shop.sh(agent.task.worktree, "add", "README")
    admin = admin_of(shop, agent.task.worktree)
    staged = (admin / "index").read_bytes()
    place = Path(shop.ctx.state_dir, "archive", agent.task.id)
    place.mkdir(parents=True)
    Path(agent.task.worktree).rename(place / "files")
    (admin / "commondir").write_bytes(b"")
    shop.ctx.store.swap(agent, expect=[State.EXITED], state=State.REMOVING)
    mend(shop.ctx, str(shop.repo))
    assert (admin / "index").read_bytes() == staged
    assert_git_works(shop)


def test_a_half_made_worktree_of_somebody_else_is_told_and_never_touched(shop: Workshop) -> None:
    shop.worker("ours")
    theirs = shop.directory / "theirs"
    shop.sh(shop.repo, "worktree", "add", "-q", str(theirs))
    admin = admin_of(shop, theirs)
    (admin / "commondir").write_bytes(b"")
    nameless = shop.repo / ".git" / "worktrees" / "nameless"
    nameless.mkdir()
    mend(shop.ctx, str(shop.repo))
    assert [o for o in sweep.observe_orphans(shop.ctx) if o.path] == [], "it may be in the making"
    age(admin, nameless)
    for path, lacks in ((admin, "commondir"), (nameless, "gitdir")):
        found = find(shop, path)
        assert found.action is Disposal.REPORT
        assert lacks in found.reason
        assert "16m ago" in found.reason
        assert found.command == f"rm -r {path}"
        assert not sweep.apply(shop.ctx, found).done
        assert path.is_dir()
    said = [check.detail for check in doctor.check_orphans(shop.ctx) if check.name == "repository"]
    assert any(f"rm -r {admin}" in line for line in said)
    assert (admin / "commondir").read_bytes() == b""


def test_one_that_leads_into_our_root_and_to_nothing_is_dropped(shop: Workshop) -> None:
    shop.worker("other")
    path = Path(shop.ctx.worktrees_dir, "repo", "gone-1234")
    shop.sh(shop.repo, "worktree", "add", "-q", str(path))
    admin = admin_of(shop, path)
    subprocess.run(["rm", "-r", path], check=True)
    (admin / "commondir").write_bytes(b"")
    repair.mend_repositories(shop.ctx)
    assert not admin.exists()
    assert_git_works(shop)


def test_a_branch_that_a_power_cut_emptied_gets_its_commit_back(shop: Workshop) -> None:
    agent = shop.worker("w")
    commit = shop.commit(Path(agent.task.worktree), "done.txt")
    (shop.repo / ".git" / "refs" / "heads" / agent.task.branch).write_bytes(b"")
    mend(shop.ctx, str(shop.repo))
    assert shop.sh(shop.repo, "rev-parse", agent.task.branch).strip() == commit
    assert_git_works(shop)


def test_a_head_that_a_power_cut_emptied_is_where_its_log_says(shop: Workshop) -> None:
    on, off = shop.worker("on"), shop.worker("off")
    shop.sh(off.task.worktree, "checkout", "-q", "--detach")
    commits = [shop.commit(Path(agent.task.worktree), "done.txt") for agent in (on, off)]
    for agent in (on, off):
        (admin_of(shop, agent.task.worktree) / "HEAD").write_bytes(b"")
    mend(shop.ctx, str(shop.repo))
    heads = [shop.sh(agent.task.worktree, "rev-parse", "HEAD").strip() for agent in (on, off)]
    assert heads == commits
    assert shop.sh(on.task.worktree, "branch", "--show-current").strip() == on.task.branch
    assert shop.sh(off.task.worktree, "branch", "--show-current").strip() == ""
    assert_git_works(shop)


def leave_note(shop: Workshop, who: str) -> Path:
    """As a command that died while it held the repository."""
    note = Path(shop.ctx.lock_note(str(shop.repo)))
    note.parent.mkdir(exist_ok=True)
    note.symlink_to(who)
    return note


def lock_of(shop: Workshop, agent: Agent) -> Path:
    return write(shop.repo / ".git" / "refs" / "heads" / f"{agent.task.branch}.lock", "")


def test_a_lock_that_a_killed_git_left_on_our_branch_does_not_stop_the_removal(
    shop: Workshop,
) -> None:
    agent = shop.worker("w")
    locks = [
        lock_of(shop, agent),
        write(
            shop.repo / ".git" / "refs" / "tmuxorch" / "salvage" / agent.task.id / "root.lock", ""
        ),
    ]
    age(*locks)
    write(Path(agent.task.worktree) / "new.txt")
    assert shop.remove(agent).salvage_ref
    assert [lock for lock in locks if lock.exists()] == []


def test_a_young_lock_on_our_branch_is_waited_for(shop: Workshop) -> None:
    agent = shop.worker("w")
    lock = lock_of(shop, agent)
    shop.remove(agent)
    assert not lock.exists()


def test_a_lock_that_somebody_holds_stays(shop: Workshop) -> None:
    agent = shop.worker("w")
    lock = lock_of(shop, agent)
    age(lock)
    script = 'exec 3<> "$1"; echo held; exec sleep 100'
    with subprocess.Popen(["sh", "-c", script, "sh", lock], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        age(lock)
        found = find(shop, lock)
        assert (found.action, found.command) == (Disposal.REPORT, None)
        assert str(holder.pid) in found.reason
        mend(shop.ctx, str(shop.repo))
        assert lock.exists()
        holder.kill()
    mend(shop.ctx, str(shop.repo))
    assert not lock.exists()


def test_a_lock_of_the_persons_is_told_with_its_age_and_left(shop: Workshop) -> None:
    agent = shop.worker("w")
    lock = write(shop.repo / ".git" / "packed-refs.lock", "")
    age(lock)
    mend(shop.ctx, str(shop.repo))
    found = find(shop, lock)
    assert (found.action, found.command) == (Disposal.REPORT, f"rm {lock}")
    assert "16m ago" in found.reason
    assert not sweep.apply(shop.ctx, found).done
    repair.mend_repositories(shop.ctx)
    assert lock.exists()
    shop.sh(shop.repo, "branch", "spare")
    commit = shop.sh(shop.repo, "rev-parse", "spare").strip()
    with pytest.raises(GitFailed, match=rf"16 min old.*`rm {lock}`"):
        git.delete_branch(git.find_repo(agent.task.repo), "spare", expected=commit)


@pytest.mark.parametrize("name", ["packed-refs.lock", "config.lock", "refs/heads/main.lock"])
def test_a_lock_made_while_a_command_of_ours_died_goes(shop: Workshop, name: str) -> None:
    shop.worker("w")
    note = leave_note(shop, dead())
    age(note, seconds=50)
    before, after = (shop.repo / ".git" / x for x in ("index.lock", name))
    for lock, seconds in ((before, 100), (after, 20)):
        write(lock, "")
        age(lock, seconds=seconds)
    mend(shop.ctx, str(shop.repo))
    assert before.exists(), "it was there before our command began"
    assert not after.exists()
    assert not os.path.lexists(note)


def test_a_git_whose_command_died_is_ended_before_the_next_goes_on(shop: Workshop) -> None:
    shop.worker("w")
    caller = dead()
    leave_note(shop, caller)
    asked = ["git", "-C", str(shop.repo), "cat-file", "--batch"]
    own, others = ({**os.environ, CALLER: who} for who in (caller, dead()))
    with (
        subprocess.Popen(asked, env=own, stdin=subprocess.PIPE) as orphan,
        subprocess.Popen(asked, env=others, stdin=subprocess.PIPE) as stranger,
    ):
        mend(shop.ctx, str(shop.repo))
        assert orphan.wait(10) != 0
        assert stranger.poll() is None
        stranger.kill()


def test_locks_and_indexes_in_the_place_of_a_resting_worker_go(shop: Workshop) -> None:
    resting, running = shop.worker("resting"), shop.worker("running", state=State.RUNNING)
    locks = [write(admin_of(shop, a.task.worktree) / "index.lock", "") for a in (resting, running)]
    index = write(admin_of(shop, resting.task.worktree) / "tmuxorch-abc" / "index", "x").parent
    age(*locks)
    age(index, seconds=10_000)
    found = sweep.observe_orphans(shop.ctx)
    for orphan in found:
        sweep.apply(shop.ctx, orphan)
    assert [path.exists() for path in (*locks, index)] == [False, True, False], found


def test_what_a_removal_renamed_and_did_not_delete_goes(shop: Workshop) -> None:
    shop.worker("w")
    gone = write(shop.repo / ".git" / "tmuxorch-gone-x" / "HEAD").parent
    mend(shop.ctx, str(shop.repo))
    assert not gone.exists()
