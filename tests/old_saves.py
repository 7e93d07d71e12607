"""Saves as tmuxorch made them first: snapshot commits under refs, and a tar.

Written with plain git, as the code of that time did it and no code of ours does any more.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.workshop import Workshop
from tmuxorch.adapters.git import facade as git
from tmuxorch.model import Agent, HistoryEntry
from tmuxorch.service.removal import salvage

WHO = [
    *("-c", "user.name=tmuxorch"),
    *("-c", "user.email=tmuxorch@localhost"),
]


@dataclass(frozen=True)
class Special:
    """What the tree of a snapshot cannot hold, or that of a nested repository at `path`."""

    path: str = ""
    tip: str | None = None
    modes: Mapping[str, int] | None = None
    empty_directories: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    intended: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()


def take_snapshot(shop: Workshop, top: Path, special: Special) -> str:
    """The snapshot of a worktree; no ref is made for it."""
    own = git.git_dir(str(top))
    head = shop.sh(top, "rev-parse", "-q", "--verify", "HEAD", ok=False).strip() or None
    on = shop.sh(top, "symbolic-ref", "-q", "HEAD", ok=False).strip().removeprefix("refs/heads/")
    unmerged = [r for r in shop.sh(top, "ls-files", "-u", "-z").split("\0") if r]
    conflicts = _conflicts(shop, top, unmerged) if unmerged else None
    scratch = _Scratch(shop, top, f"{own}/index")
    for record in unmerged:
        scratch.sh("update-index", "--force-remove", "--", record.partition("\t")[2])
    staged = _commit(shop, top, scratch.sh("write-tree").strip(), [head], "index")
    scratch = _Scratch(shop, top, f"{own}/index")
    for path in special.assumed:
        scratch.sh("update-index", "--no-assume-unchanged", "--", path)
    for path in special.skipped:
        scratch.sh("update-index", "--no-skip-worktree", "--", path)
    scratch.sh("add", "-A")
    tree = scratch.sh("write-tree").strip()
    facts: dict[str, object] = {
        "head": head,
        "branch": on or None,
        "staged": staged,
        "conflicts": conflicts,
        "unfiltered": [],
        "empty_directories": special.empty_directories,
        "tip": special.tip,
        "path": special.path,
        "assumed": special.assumed,
        "skipped": special.skipped,
        "intended": special.intended,
        "modes": special.modes or {},
    }
    parents = [head, staged, conflicts, special.tip, *special.parents]
    return _commit(shop, top, tree, parents, f"files\n\n{json.dumps(facts)}")


class _Scratch:
    """git with a copy of the index, until the next one is made."""

    def __init__(self, shop: Workshop, top: Path, index: str | None) -> None:
        self.shop, self.top = _likewise(shop), top
        copy = shop.directory / "scratch-index"
        copy.unlink(missing_ok=True)
        if index is not None and os.path.exists(index):
            shutil.copy2(index, copy)
        self.shop.environ["GIT_INDEX_FILE"] = str(copy)

    def sh(self, *arguments: str) -> str:
        return self.shop.sh(self.top, *arguments)


def _likewise(shop: Workshop) -> Workshop:
    """The same workshop with an environment of its own."""
    other = Workshop.__new__(Workshop)
    other.__dict__.update(shop.__dict__)
    other.environ = dict(shop.environ)
    return other


def _conflicts(shop: Workshop, top: Path, unmerged: Iterable[str]) -> str:
    scratch = _Scratch(shop, top, None)
    for record in unmerged:
        about, _, path = record.partition("\t")
        mode, oid, stage = about.split(" ")
        scratch.sh("update-index", "--add", "--cacheinfo", f"{mode},{oid},{stage}/{path}")
    return _commit(shop, top, scratch.sh("write-tree").strip(), [], "conflicts")


def _commit(shop: Workshop, top: Path, tree: str, parents: Iterable[str | None], what: str) -> str:
    named = [x for oid in dict.fromkeys(parents) if oid for x in ("-p", oid)]
    return shop.sh(top, *WHO, "commit-tree", tree, *named, "-m", f"tmuxorch: {what}").strip()


def remove(
    shop: Workshop,
    agent: Agent,
    special: Special,
    *,
    nested: Iterable[Special] = (),
    files: Iterable[str] = (),
    notes: Iterable[str] = (),
) -> HistoryEntry:
    """Remove the worker as it was done then.

    `files` of the worktree and `notes` of git's directory for it go into the tar.
    """
    top, prefix = Path(agent.task.worktree), f"{salvage.REFS}/{agent.task.id}"
    tip = shop.sh(shop.repo, "rev-parse", agent.task.branch).strip()
    refs = {f"{prefix}/root": take_snapshot(shop, top, replace(special, tip=tip))}
    for number, inner in enumerate(nested):
        saved, inside = f"{prefix}-/{number}", top / inner.path
        shop.sh(inside, "update-ref", "refs/snapshot", take_snapshot(shop, inside, inner))
        root = f"+refs/snapshot:{saved}/root"
        shop.sh(shop.repo, "fetch", "-q", str(inside), root)
        shop.sh(inside, "update-ref", "-d", "refs/snapshot")
        shop.sh(shop.repo, "fetch", "-q", "--no-tags", str(inside), f"+refs/*:{saved}/refs/*")
    kept = shop.sh(shop.repo, "for-each-ref", "--format=%(refname) %(objectname)", f"{prefix}-/")
    for line in kept.splitlines():
        name, oid = line.split(" ")
        refs[name.replace(f"{prefix}-", f"{prefix}/nested")] = oid
        shop.sh(shop.repo, "update-ref", "-d", name)
    archive = Path(shop.ctx.state_dir, "archive", f"{agent.task.id}.tar")
    archive.parent.mkdir(mode=0o700, exist_ok=True)
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for name in files:
            tar.add(top / name, f"files/{name}")
        own = git.git_dir(str(top))
        for name in {*notes} & {*os.listdir(own)}:
            tar.add(f"{own}/{name}", f"git/{name}")
        empty = not tar.getmembers()
    if empty:
        archive.unlink()
    _replace_save(shop, agent, refs, None if empty else str(archive))
    entry = shop.ctx.store.history_entry(agent.task.id)
    assert entry is not None
    return entry


def _replace_save(
    shop: Workshop, agent: Agent, refs: Mapping[str, str], archive: str | None
) -> None:
    """Remove the worker as it is done now, and put the old save in the place of the new one."""
    for number, oid in enumerate(refs.values()):
        shop.sh(shop.repo, "update-ref", f"refs/held/{number}", oid)
    entry = shop.remove(agent)
    if entry.archive is not None:
        salvage.drop(git.find_repo(entry.task.repo), entry.task.id, entry.archive)
        shutil.rmtree(entry.archive)
    for number, (ref, oid) in enumerate(refs.items()):
        shop.sh(shop.repo, "update-ref", ref, oid)
        shop.sh(shop.repo, "update-ref", "-d", f"refs/held/{number}")
    db = sqlite3.connect(shop.directory / "state" / "tmuxorch.db")
    with db:
        row = [f"{salvage.REFS}/{agent.task.id}/root", archive, agent.task.id]
        db.execute("UPDATE history SET salvage_ref = ?, archive = ? WHERE id = ?", row)
    db.close()
