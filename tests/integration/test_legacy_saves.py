"""Saves of the first kind: made into those of today, published by nobody, restored whole."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import old_saves
from tests.old_saves import Special
from tests.workshop import Look, Workshop, write
from tmuxorch.core.view import history_json
from tmuxorch.errors import CannotRestore
from tmuxorch.model import Agent, HistoryEntry
from tmuxorch.service.care import doctor
from tmuxorch.service.removal import history, legacy_saves, salvage
from tmuxorch.service.sweep import sweep

# Never committed, one for every place where such a thing may be.
SECRETS = {
    "staged": "staged, and edited since\n",
    "edited": "edited since it was staged\n",
    "key": "a key that nobody added\n",
    "hidden": "an edit that git was told not to see\n",
    "inner staged": "staged in a repository inside\n",
    "inner edited": "edited in a repository inside\n",
    "earlier": "as an earlier attempt saw it\n",
}
NESTED = "vendor/tool"
# Ends the process at one step, as a power cut would.
KILLED = """
import os, signal, sys
from tmuxorch.service.removal import legacy_saves
from tmuxorch.service.context import open_context
def checkpoint(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
ctx = open_context(os.environ, socket="no-tmux")
ctx.checkpoint = checkpoint
legacy_saves.convert(ctx, ctx.store.history_entry(sys.argv[1]))
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


def work(shop: Workshop, top: Path) -> list[str]:
    """All kinds of work at once; returns commits that no branch has."""
    shop.commit(shop.repo, "both.txt", "theirs\n")
    shop.commit(top, "both.txt", "ours\n")
    lost = shop.commit(top, "dropped.txt")
    shop.sh(top, "reset", "-q", "--hard", "HEAD~1")
    shop.sh(top, "merge", "main", ok=False)
    write(top / "both.txt", "half <<<<<<<\n")
    write(top / "README", SECRETS["staged"])
    shop.sh(top, "add", "README")
    write(top / "README", SECRETS["edited"])
    shop.sh(top, "update-index", "--assume-unchanged", "src/app.py")
    write(top / "src/app.py", SECRETS["hidden"])
    write(top / "secret.key", SECRETS["key"]).chmod(0o600)
    write(top / "soon.txt")
    shop.sh(top, "add", "-N", "soon.txt")
    write(top / ".env", "KEY=1\n").chmod(0o640)
    write(top / "build/out.bin", os.urandom(100)).chmod(0o400)
    (top / "build").chmod(0o750)
    write(top / "tool.sh").chmod(0o755)
    (top / "run.sh").unlink()
    (top / "broken").symlink_to("/nowhere")
    (top / "empty/deep").mkdir(parents=True)
    write(top / os.fsdecode(b"\xff\n"), b"odd")
    return [lost, *work_inside(shop, top / NESTED)]


def test_line_ends_of_gits_making_come_back(shop: Workshop) -> None:
    shop.commit(shop.repo, ".gitattributes", "*.bat eol=crlf\n")
    shop.commit(shop.repo, "win.bat", "one\n")
    agent = shop.worker()
    top = Path(agent.task.worktree)
    write(top / "new.txt")
    before = shop.look(top)
    assert before.files[b"win.bat"][1] == b"one\r\n"
    entry = old_saves.remove(shop, agent, Special())
    shop.restore(entry)
    assert shop.look(top) == before


def work_inside(shop: Workshop, top: Path) -> list[str]:
    top.mkdir(parents=True)
    shop.sh(top, "init", "-q")
    write(top / ".gitattributes", "*.bat eol=crlf\n")
    write(top / "win.bat", b"one\r\n")
    shop.sh(top, "add", ".")
    shop.commit(top, "tool.py", "print()\n")
    shop.sh(top, "branch", "other")
    lost = shop.commit(top, "dropped.py")
    shop.sh(top, "reset", "-q", "--hard", "HEAD~1")
    shop.commit(top, "more.py")
    write(top / "tool.py", SECRETS["inner staged"])
    shop.sh(top, "add", "tool.py")
    write(top / "tool.py", SECRETS["inner edited"])
    shop.sh(top, "config", "user.email", "inner@example.org")
    return [lost]


def old_save(shop: Workshop) -> tuple[Agent, HistoryEntry, Look, list[str]]:
    """A removed worker with an old save, how its worktree looked, and commits of no branch."""
    agent = shop.worker()
    top = Path(agent.task.worktree)
    write(top / "earlier.txt", SECRETS["earlier"])
    earlier = old_saves.take_snapshot(shop, top, Special())
    (top / "earlier.txt").unlink()
    lost, inner = work(shop, top)
    special = Special(
        modes={"secret.key": 0o600},
        empty_directories=("empty/deep",),
        assumed=("src/app.py",),
        intended=("soon.txt",),
        parents=(earlier, lost),
    )
    before = looked(shop, top)
    entry = old_saves.remove(
        shop,
        agent,
        special,
        nested=[Special(path=NESTED, parents=(inner,))],
        files=[".env", "build", f"{NESTED}/.git/config"],
        notes=["AUTO_MERGE", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE"],
    )
    assert legacy_saves.is_old(entry)
    return agent, entry, before, [lost, inner]


def looked(shop: Workshop, top: Path) -> Look:
    """The worktree, and of the repository inside what git tells of it."""
    look, inner = shop.look(top), top / NESTED
    files = {n: f for n, f in look.files.items() if b"/.git/" not in n or n.endswith(b"git/config")}
    told = [
        shop.sh(inner, *asked)
        for asked in (
            ("symbolic-ref", "HEAD"),
            ("for-each-ref", "refs/heads", "--format=%(refname) %(objectname)"),
            ("log", "--format=%H"),
            ("ls-files", "-s", "-v"),
            ("status", "--porcelain=v2"),
            ("fsck", "--no-dangling"),
        )
    ]
    return replace(look, files=files, head=look.head + "\n".join(told))


def published(shop: Workshop, name: str) -> set[str]:
    """The secrets that a push of everything carries to another repository."""
    mirror = shop.directory / name
    shop.sh(shop.directory, "init", "-q", "--bare", str(mirror))
    shop.sh(shop.repo, "push", "-q", "--mirror", str(mirror))
    asked = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    there = set(shop.sh(mirror, *asked).split())
    return {what for what, text in SECRETS.items() if blob(shop, text) in there}


def blob(shop: Workshop, text: str) -> str:
    file = write(shop.directory / "blob", text)
    return shop.sh(shop.repo, "hash-object", "--no-filters", str(file)).strip()


def test_an_old_save_comes_back_whole(shop: Workshop) -> None:
    agent, entry, before, (lost, inner) = old_save(shop)
    converted = legacy_saves.convert(shop.ctx, entry)
    assert converted == shop.ctx.store.history_entry(entry.task.id)
    assert history_json(converted) == history_json(entry)
    assert os.listdir(Path(shop.ctx.state_dir, "archive")) == [entry.task.id]
    shop.collect_garbage()
    shop.restore(converted)
    top = Path(agent.task.worktree)
    assert looked(shop, top) == before
    shop.sh(shop.repo, "cat-file", "-e", lost)
    shop.sh(top / NESTED, "gc", "-q", "--prune=now")
    shop.sh(top / NESTED, "cat-file", "-e", inner)
    assert shop.sh(top, "commit", "-qam", "goes on") == ""
    shop.sh(top, "fsck")


def test_a_restore_converts_first(shop: Workshop) -> None:
    agent, entry, before, _ = old_save(shop)
    shop.restore(entry)
    assert looked(shop, Path(agent.task.worktree)) == before
    now = shop.ctx.store.history_entry(entry.task.id)
    assert now is not None
    assert not legacy_saves.is_old(now)


def test_a_push_of_everything_publishes_nothing_that_was_never_committed(shop: Workshop) -> None:
    agent, entry, _, (lost, _) = old_save(shop)
    assert published(shop, "before.git") == {*SECRETS}
    legacy_saves.convert(shop.ctx, entry)
    assert published(shop, "after.git") == set()
    shop.sh(shop.directory / "after.git", "cat-file", "-e", lost)
    shop.restore(entry)
    top = Path(agent.task.worktree)
    assert "tmuxorch@localhost" not in shop.sh(top / NESTED, "log", "--all", "--format=%ae")


def test_a_conversion_that_is_killed_anywhere_is_carried_on(shop: Workshop) -> None:
    agent, entry, before, _ = old_save(shop)
    steps = ("files", "written", "built", "held", "dropped", "cleared")
    for step in steps:
        argv = [sys.executable, "-c", KILLED, entry.task.id, f"convert:{step}"]
        done = subprocess.run(argv, env={**os.environ, **shop.environ}, check=False)
        assert done.returncode == -signal.SIGKILL, step
    shop.collect_garbage()
    shop.restore(entry)
    assert looked(shop, Path(agent.task.worktree)) == before
    assert os.listdir(Path(shop.ctx.state_dir, "archive")) == [entry.task.id]
    assert published(shop, "after.git") == set()


def test_a_repository_inside_that_was_restored_once_keeps_no_snapshot(shop: Workshop) -> None:
    agent = shop.worker()
    inner = Path(agent.task.worktree, NESTED)
    inner.mkdir(parents=True)
    shop.sh(inner, "init", "-q")
    lost = shop.commit(inner, "a.py")
    shop.commit(inner, "b.py")
    write(inner / "b.py", SECRETS["inner edited"])
    earlier = old_saves.take_snapshot(shop, inner, Special(parents=(lost,)))
    shop.sh(inner, "update-ref", legacy_saves.KEPT, earlier)
    entry = old_saves.remove(shop, agent, Special(), nested=[Special(path=NESTED)])
    assert entry.archive is None
    shop.restore(entry)
    assert (inner / "b.py").read_text() == SECRETS["inner edited"]
    assert "tmuxorch@localhost" not in shop.sh(inner, "log", "--all", "--format=%ae")
    assert lost in shop.sh(inner, "log", "--all", "--format=%H")


def test_the_watcher_converts_all_and_tells_of_a_failure_once(shop: Workshop) -> None:
    _, good, _, _ = old_save(shop)
    agent = shop.worker()
    write(Path(agent.task.worktree, "new.txt"))
    bad = old_saves.remove(shop, agent, Special())
    shop.sh(shop.repo, "update-ref", "-d", str(bad.salvage_ref))
    checks = {check.name: check.detail for check in doctor.check_orphans(shop.ctx)}
    assert checks["saves"].startswith("2 of an older kind")
    told: set[str] = set()
    done = {orphan.id: orphan.done for orphan in sweep.sweep_safe(shop.ctx, told)}
    assert done == {good.task.id: True, bad.task.id: False}
    assert sweep.sweep_safe(shop.ctx, told) == []
    assert shop.ctx.store.history_entry(bad.task.id) == bad
    with pytest.raises(CannotRestore, match="stays as it is"):
        shop.restore(bad)


def test_a_sweep_converts_what_is_past_its_days_and_drops_none_of_it(shop: Workshop) -> None:
    _, entry, _, _ = old_save(shop)
    shop.ctx.clock = lambda: entry.removed_at + 10 * history.DAY_S
    assert history.observe_unmerged(entry) is not None
    (found,) = sweep.observe_orphans(shop.ctx, keep_days=1)
    assert (found.kind, found.action) == (sweep.Thing.HISTORY, sweep.Disposal.SALVAGE)
    assert sweep.apply(shop.ctx, found, keep_days=1).done
    (found,) = sweep.observe_orphans(shop.ctx, keep_days=1)
    assert found.action is sweep.Disposal.KEEP


def special_member(name: str, **values: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    for key, value in values.items():
        setattr(member, key, value)
    return member


@pytest.mark.parametrize(
    "members",
    [
        [special_member("files/../escaped")],
        [special_member("files//escaped")],
        [special_member("files/.git")],
        [special_member("git/commondir")],
        [special_member("files/escaped", type=tarfile.LNKTYPE, linkname="/etc/passwd")],
        [
            special_member("files/way", type=tarfile.SYMTYPE, linkname="/tmp"),
            special_member("files/way/file"),
        ],
    ],
    ids=lambda members: members[0].name,
)
def test_an_archive_that_leads_elsewhere_is_refused(
    shop: Workshop, members: list[tarfile.TarInfo]
) -> None:
    entry = with_members(shop, members)
    held = shop.sh(shop.repo, "for-each-ref")
    with pytest.raises(CannotRestore, match="stays as it is"):
        shop.restore(entry)
    assert shop.ctx.store.history_entry(entry.task.id) == entry
    assert shop.sh(shop.repo, "for-each-ref") == held
    assert os.path.exists(str(entry.archive))


def test_no_device_or_dangerous_permission_comes_from_an_archive(shop: Workshop) -> None:
    entry = with_members(
        shop,
        [
            special_member("files/null", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
            special_member("files/root", mode=0o6755),
        ],
    )
    agent = shop.restore(entry)
    assert Path(agent.task.worktree, "new.txt").read_text() == "new\n"
    assert not Path(agent.task.worktree, "null").exists()
    assert Path(agent.task.worktree, "root").stat().st_mode == 0o100755


def with_members(shop: Workshop, members: list[tarfile.TarInfo]) -> HistoryEntry:
    agent = shop.worker()
    write(Path(agent.task.worktree, "new.txt"))
    entry = old_saves.remove(shop, agent, Special())
    archive = f"{shop.ctx.state_dir}/archive/{entry.task.id}.tar"
    with tarfile.open(archive, "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO())
    ref = f"{salvage.REFS}/{entry.task.id}/root"
    shop.ctx.store.amend_history(entry.task.id, salvage_ref=ref, archive=archive)
    return replace(entry, archive=archive)
