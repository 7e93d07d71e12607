"""Saves of the first kind (see `adapters/old_saves`) made into those of today.

The old ones had what was never committed under refs, where a push could publish it.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git import packs
from tmuxorch.adapters.git.call import CHECKOUT_S
from tmuxorch.adapters.git.checkout import Checkout
from tmuxorch.adapters.git.deletion import delete_directory
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.git.survey import hash_file
from tmuxorch.adapters.store import saves
from tmuxorch.adapters.store.old_saves import (
    SUBMODULE,
    Facts,
    Filling,
    list_tree,
    make_index,
    observe_changes,
    observe_committed,
    read_facts,
)
from tmuxorch.adapters.store.saves import Manifest
from tmuxorch.errors import CannotRestore, CannotSave, GitFailed
from tmuxorch.service.care.repository_lock import repo_lock
from tmuxorch.service.removal import salvage

if TYPE_CHECKING:
    from tmuxorch.model import HistoryEntry
    from tmuxorch.service.context import Context

# In a nested repository: commits that only its logs knew.
KEPT = "refs/tmuxorch/restored"
SNAPSHOT = "refs/tmuxorch/snapshot"
# What git has of its own in a worktree's git directory, and no old save has.
OWN = ("HEAD", "commondir", "gitdir", "index", "locked")
FETCH = (
    *("-c", "transfer.fsckObjects=false"),
    *("-c", "fetch.fsckObjects=false"),
    *("-c", "maintenance.auto=false"),
    *("-c", "gc.auto=0"),
    *("fetch", "--quiet", "--no-tags", "--update-head-ok", "--no-write-fetch-head"),
    "--no-recurse-submodules",
    "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack",
)


def is_old(entry: HistoryEntry) -> bool:
    return entry.salvage_ref is not None and (
        entry.archive is None or entry.archive.endswith(".tar")
    )


def observe(ctx: Context) -> Iterator[HistoryEntry]:
    """The entries with a save of the first kind whose removal is over."""
    for agent_id in ctx.store.past.old_saves():
        entry = ctx.store.history_entry(agent_id)
        if entry is not None and ctx.store.agent(agent_id) is None:
            yield entry


def convert(ctx: Context, entry: HistoryEntry) -> HistoryEntry:
    """Make the entry's save one of today; CannotSave if it cannot be, and it stays as it is.

    Nothing old goes before the new one is whole and read back. The row changes last, so that
    the next call carries on what a crash cut short.
    """
    repo = git.find_repo(entry.task.repo)
    place = os.path.join(ctx.state_dir, "archive", entry.task.id)
    with repo_lock(ctx, entry.task.repo):
        now = ctx.store.history_entry(entry.task.id)
        if now is None or not is_old(now):
            return now or entry
        ctx.narrate(f"the save of {entry.task.name} is of an older kind and is made anew")
        try:
            if not saves.is_whole(place):
                _build(ctx, repo, now, place)
            ctx.checkpoint("convert:built")
            commits = saves.read_manifest(place).commits
            prefix = f"{salvage.REFS}/{entry.task.id}"
            salvage.hold(repo, prefix, commits)
            ctx.checkpoint("convert:held")
            _drop_refs(repo, prefix, len(commits))
            ctx.checkpoint("convert:dropped")
            if now.archive is not None:
                with suppress(FileNotFoundError):
                    os.unlink(now.archive)
        except (CannotSave, CannotRestore, GitFailed, OSError, tarfile.TarError) as error:
            raise CannotSave(
                f"the old save of {entry.task.name} stays as it is: {error}"
            ) from error
        ctx.checkpoint("convert:cleared")
        ctx.store.amend_history(entry.task.id, salvage_ref=now.salvage_ref, archive=place)
    return replace(now, archive=place)


def _drop_refs(repo: Repo, prefix: str, held: int) -> None:
    """Delete the refs of the old save, all that the new one does not have."""
    wanted = {f"{prefix}/root", *(f"{prefix}/{number}" for number in range(1, held))}
    names = git.git(repo.root, "for-each-ref", "--format=%(refname)", f"{prefix}/").stdout
    lines = "".join(f"delete {n}\n" for n in os.fsdecode(names).splitlines() if n not in wanted)
    if lines:
        git.git(repo.root, "update-ref", "--stdin", stdin=os.fsencode(lines))


def _build(ctx: Context, repo: Repo, entry: HistoryEntry, place: str) -> None:
    """Make the whole save beside its place, then put it there."""
    if os.path.lexists(place):
        raise CannotSave(f"{place} is in the way of the save of {entry.task.name}")
    part = f"{place}.converting"
    if os.path.lexists(part):
        delete_directory(part)
    os.makedirs(f"{part}/files", mode=0o700)
    manifest = _fill(ctx, repo, entry, part)
    # The old save goes next: what is only in the machine's memory is not saved yet.
    os.sync()
    saves.write_manifest(part, manifest)
    ctx.checkpoint("convert:written")
    os.rename(part, place)


def _fill(ctx: Context, repo: Repo, entry: HistoryEntry, part: str) -> Manifest:
    ref = str(entry.salvage_ref)
    facts = read_facts(repo.root, ref)
    changes, gone = observe_changes(repo.root, ref, facts.head)
    filling = Filling(f"{part}/files")
    filling.write_blobs(repo.root, changes, facts.modes)
    filling.make_directories(facts.empty_directories)
    ctx.checkpoint("convert:files")
    for saved in _nested_saves(repo, ref):
        _make_nested(repo, saved, filling)
    own = _make_git(repo, part, facts)
    if entry.archive is not None:
        left = filling.unpack(entry.archive, "files", barred=[".git"])
        left += Filling(own).unpack(entry.archive, "git", barred=OWN)
        if left:
            ctx.narrate(f"no save brings back devices of {entry.task.name}: {', '.join(left[:3])}")
    filling.check()
    checkout = Checkout(filling.top, own)
    absent = _narrow(checkout, facts.head)
    if facts.head:
        other = gone | absent | {change.path for change in changes}
        _keep_converted(checkout, facts.head, other, f"{part}/fresh")
    packs.write_staged(own, facts.head, f"{part}/staged.pack")
    lasting = packs.observe_lasting(repo)
    committed = (facts.head, facts.tip, *observe_committed(repo.root, ref))
    held = tuple(oid for oid in dict.fromkeys(committed) if oid) or (entry.task.base_commit,)
    pack = packs.keep_pack(repo, held, lasting)
    packs.check_connected(repo, held, lasting)
    kept = filling.list_kept()
    return Manifest(
        head=facts.head,
        branch=facts.branch,
        tip=facts.tip or (None if facts.head else held[0]),
        whole=True,
        usual=filling.usual,
        kept=tuple(kept),
        gone=tuple(sorted((gone | absent) - {path for path, _, _ in kept})),
        commits=held,
        pack=pack,
        top=entry.task.worktree,
    )


def _make_git(repo: Repo, part: str, facts: Facts) -> str:
    """A git directory as a linked worktree has it, with the index that was."""
    own = f"{part}/git"
    os.mkdir(own, 0o700)
    head = f"ref: refs/heads/{facts.branch}" if facts.branch else facts.head
    for name, line in (("HEAD", head), ("commondir", repo.common_dir)):
        with open(f"{own}/{name}", "wb") as file:
            file.write(os.fsencode(f"{line}\n"))
    make_index(Checkout(f"{part}/files", own), facts)
    return own


def _narrow(checkout: Checkout, head: str | None) -> frozenset[str]:
    """Flag what a sparse checkout leaves out, as it was; what of the commit is absent for it."""
    if head is None or not os.path.exists(f"{checkout.own}/info/sparse-checkout"):
        return frozenset()
    where = f"--git-dir={checkout.own}"
    asked = ("config", "--bool", "core.sparseCheckout")
    if git.git(checkout.own, where, *asked, ok=(0, 1)).stdout.strip() != b"true":
        return frozenset()
    checkout.ask("-c", "core.sparseCheckout=true", "sparse-checkout", "reapply")
    answer = os.fsdecode(checkout.ask("ls-files", "-z", "-t").stdout).split("\0")
    skipped = {record[2:] for record in answer if record.startswith("S ")}
    return frozenset(skipped.intersection(path for _, _, path in list_tree(checkout.own, head)))


def _keep_converted(checkout: Checkout, head: str, besides: frozenset[str], fresh: str) -> None:
    """Add the files that were as in the commit, but for line ends and the like of git's making.

    A restore gives all that is not in a save the very bytes of its object.
    """
    os.mkdir(fresh, 0o700)
    _check_out(Checkout(fresh, checkout.own), head, besides)
    converted = []
    for _, oid, path in list_tree(checkout.own, head):
        made = f"{fresh}/{path}"
        if os.path.isfile(made) and not os.path.islink(made):
            facts = os.lstat(made)
            same = hash_file(made, facts, oid) == oid
            if not same and not os.path.lexists(f"{checkout.top}/{path}"):
                converted.append((path, facts.st_mode))
    saves.copy_entries(fresh, checkout.top, converted)
    delete_directory(fresh)


# -- repositories inside -------------------------------------------------------------------


def _nested_saves(repo: Repo, ref: str) -> list[str]:
    """The refs of nested repositories, each after those it is inside of."""
    pattern = ref.removesuffix("/root") + "/nested/*/root"
    names = git.git(repo.root, "for-each-ref", "--format=%(refname)", pattern).stdout.decode()
    found = [name.removesuffix("/root") for name in names.splitlines()]
    return sorted(found, key=lambda name: int(name.rpartition("/")[2]))


def _make_nested(repo: Repo, saved: str, filling: Filling) -> None:
    """A repository of its own, of the refs below `saved` and the snapshot `saved`/root.

    What was staged there is held by its index alone, so that no push of it takes that along.
    """
    facts = read_facts(repo.root, f"{saved}/root")
    filling.make_directories([facts.path])
    top = f"{filling.top}/{facts.path}"
    likewise = ["--object-format=sha256"] if len(facts.staged) == 64 else []
    git.git(top, "init", "--quiet", "--template=", *likewise)
    inner = Repo(top, f"{top}/.git", bare=False)
    _fetch_nested(repo, inner, saved, facts)
    checkout = Checkout(top, inner.common_dir)
    changes, gone = observe_changes(top, SNAPSHOT, facts.head)
    if facts.head:
        _check_out(checkout, facts.head, gone.union(change.path for change in changes))
    filling.write_blobs(top, changes, facts.modes, f"{facts.path}/")
    filling.make_directories(f"{facts.path}/{path}" for path in facts.empty_directories)
    make_index(checkout, facts)
    git.git(top, "update-ref", "-d", SNAPSHOT)


def _fetch_nested(repo: Repo, inner: Repo, saved: str, facts: Facts) -> None:
    refs = _refs(repo, f"{saved}/refs/")
    tops = [f"{saved}/root"]
    # A repository that was once restored has the snapshot that it came from under a ref.
    tops += [f"{saved}/{ref}" for ref in refs if ref == KEPT]
    held = [oid for top in tops for oid in observe_committed(repo.root, top) if oid != facts.head]
    wanted = {ref: oid for ref, oid in refs.items() if not ref.startswith("refs/tmuxorch/")}
    wanted |= {f"{KEPT}/{number}": oid for number, oid in enumerate(dict.fromkeys(held))}
    specs = [f"+{saved}/root:{SNAPSHOT}", f"+{saved}/refs/*:refs/*", f"^{saved}/refs/tmuxorch/*"]
    specs += [f"+{oid}:{ref}" for ref, oid in wanted.items() if ref.startswith(KEPT)]
    asked = (*FETCH, os.path.abspath(repo.root), *specs)
    git.git(inner.root, *asked, env={"GIT_ALLOW_PROTOCOL": "file"}, timeout_s=CHECKOUT_S)
    if facts.branch:
        git.git(inner.root, "symbolic-ref", "HEAD", f"refs/heads/{facts.branch}")
    if facts.head:
        where = ("HEAD",) if facts.branch else ("--no-deref", "HEAD")
        git.git(inner.root, "update-ref", *where, facts.head)
    # git may pass over a ref that it does not like, and still say that all is well.
    if not wanted.items() <= _refs(inner, "").items():
        raise CannotSave(f"not all of the repository {facts.path} inside could be fetched")
    packs.check_connected(inner, [SNAPSHOT, *wanted.values()], ())


def _refs(repo: Repo, prefix: str) -> dict[str, str]:
    asked = ("for-each-ref", "--format=%(objectname) %(refname)", *([prefix] if prefix else []))
    lines = os.fsdecode(git.git(repo.root, *asked).stdout).splitlines()
    pairs = (line.split(" ", 1) for line in lines)
    top = prefix.removesuffix("refs/")
    return {ref.removeprefix(top): oid for oid, ref in pairs}


def _check_out(checkout: Checkout, head: str, besides: frozenset[str]) -> None:
    """Write the files that were as in the commit, with git's own conversions and no filter."""
    names = [
        path
        for mode, _, path in list_tree(checkout.own, head)
        if mode != SUBMODULE and path not in besides
    ]
    env = {"GIT_INDEX_FILE": f"{checkout.own}/tmuxorch-index"}
    checkout.ask("read-tree", head, env=env)
    stdin = os.fsencode("".join(f"{path}\0" for path in names))
    asked: Sequence[str] = ("checkout-index", "-q", "-z", "--stdin")
    checkout.ask(*asked, stdin=stdin, env=env, timeout_s=CHECKOUT_S)
    os.unlink(env["GIT_INDEX_FILE"])
