"""A saved worktree as it was: its files, its index, its logs, its half-done operation.

Whatever comes back is looked at as the save was: it is said to be there only when it is.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git import packs
from tmuxorch.adapters.git.admin import canonical
from tmuxorch.adapters.git.blobs import write_blobs
from tmuxorch.adapters.git.call import CHECKOUT_S
from tmuxorch.adapters.git.checkout import Checkout
from tmuxorch.adapters.git.inner import put_back_inner
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.git.survey import survey
from tmuxorch.adapters.git.worktrees import find_admin_dir
from tmuxorch.adapters.store import saves
from tmuxorch.adapters.store.saves import Manifest, copy_entries, copy_tree
from tmuxorch.adapters.system.treewalk import walk
from tmuxorch.errors import CannotRestore, GitFailed

# What git writes anew for every worktree, and what belongs to the old one alone.
PLACED = ("commondir", "gitdir", "locked", "HEAD", "reftable")


def restore(
    repo: Repo,
    place: str,
    worktree: str,
    *,
    was: str,
    base: str,
    branch: str,
    reason: str,
    marker: Mapping[str, str],
    on_output: Callable[[bytes], None] | None = None,
) -> list[str]:
    """Make a worktree on `branch` that is as the saved one was, down to a half-done operation.

    `was` is what the worker's branch was called, `base` where it began; `branch` is made if it
    does not exist, and refused if it is elsewhere than that was. The save itself stays. Returns
    what no save brings
    back (sockets). Raises unless all of it is there and as it was; the caller then removes what
    was made.
    """
    manifest = saves.read_manifest(place)
    start = branch_start(manifest, was, base)
    now = git.branch_commit(repo, branch)
    if now not in (None, start):
        raise GitFailed(
            f"the branch {branch} has moved since the work was saved; restore to another name"
        )
    git.add_worktree(
        repo,
        worktree,
        branch=branch,
        new_branch=now is None,
        commit=start,
        reason=reason,
        marker=marker,
        checkout=False,
        on_output=on_output,
    )
    own = find_admin_dir(repo, worktree)
    if own is None:
        raise CannotRestore(f"git does not know the worktree {worktree} that it has just made")
    checkout = Checkout(worktree, own)
    if manifest.branch != was:
        _put_back_head(repo, own, manifest)
    try:
        _put_back_committed(checkout, manifest)
        entries = [(path, mode) for path, mode, _ in manifest.kept]
        left = copy_entries(f"{place}/files", worktree, entries) if manifest.whole else []
        if manifest.whole:
            shutil.copymode(f"{place}/files", worktree)
        _put_back_git(repo, checkout, manifest, place)
        _verify(checkout, manifest, place, left)
        for number, inner in enumerate(manifest.inner):
            _put_back_inner(repo, checkout, manifest, f"{place}/inner/{number}", *inner)
    except OSError as error:
        raise CannotRestore(f"not all of it could be brought back: {error}") from error
    return left


def branch_start(manifest: Manifest, was: str, base: str) -> str:
    """Where the worker's branch `was` at the save; its `base` if it was nowhere."""
    here = manifest.head if manifest.branch == was else manifest.tip
    return here or manifest.head or manifest.tip or base


def _put_back_head(repo: Repo, own: str, manifest: Manifest) -> None:
    """HEAD on the other branch that it was on, or detached where that moved or is in use."""
    where = f"--git-dir={own}"
    in_use = {listed.branch for listed in git.list_worktrees(repo)}
    free = manifest.branch and manifest.branch not in in_use
    if free and git.branch_commit(repo, str(manifest.branch)) == manifest.head:
        git.git(own, where, "symbolic-ref", "HEAD", f"refs/heads/{manifest.branch}")
    elif manifest.head:
        git.git(own, where, "update-ref", "--no-deref", "HEAD", manifest.head)


def _put_back_committed(checkout: Checkout, manifest: Manifest) -> None:
    """Write the files that had the very bytes of the commit, whatever git would make of them."""
    if manifest.head is None:
        return
    checkout.ask("read-tree", manifest.head)
    other = {*manifest.gone, *(path for path, _, _ in manifest.kept)}
    executable = manifest.usual | (manifest.usual & 0o444) >> 2
    modes = {"100644": manifest.usual, "100755": executable, "120000": stat.S_IFLNK}
    answer = os.fsdecode(checkout.ask("ls-files", "-z", "-s").stdout)
    files = []
    for record in answer.split("\0")[:-1]:
        about, _, path = record.partition("\t")
        mode, oid, _ = about.split(" ")
        if mode in modes and path not in other:
            files.append((path, modes[mode], oid))
    if manifest.whole:
        write_blobs(checkout, files)


def _put_back_git(repo: Repo, checkout: Checkout, manifest: Manifest, place: str) -> None:
    """Index, logs and half-done operations as they were, with the objects that they need."""
    saved = f"{place}/git"
    if not os.path.isdir(saved):
        return
    _check_links(saved)
    pack = _bring_staged(repo, place)
    if not os.path.exists(f"{saved}/index"):
        os.unlink(f"{checkout.own}/index")
    copy_tree(saved, checkout.own, skip=PLACED, link="objects")
    _place_submodules(checkout, manifest)
    if not manifest.whole:
        checkout.ask("checkout-index", "-q", "-a", "-f", timeout_s=CHECKOUT_S)
    _settle_index(repo, checkout, pack)


def _bring_staged(repo: Repo, place: str) -> str | None:
    """The objects that only the index names; the pack that they are in now, if there are any."""
    if not os.path.exists(f"{place}/staged.pack"):
        return None
    return packs.read_staged(repo, f"{place}/staged.pack")


def _settle_index(repo: Repo, checkout: Checkout, pack: str | None) -> None:
    """Have the index know the files, and need the objects of the pack."""
    if pack is not None:
        # The index may name trees that nobody saved; what is staged makes them again.
        checkout.ask("write-tree", ok=(0, 128))
    # Status 1 is git's word for "some differ".
    checkout.ask("update-index", "-q", "--refresh", ok=(0, 1, 128))
    if pack is not None:
        packs.drop_pack(repo, pack)


def _put_back_inner(
    repo: Repo,
    outer: Checkout,
    manifest: Manifest,
    saved: str,
    path: str,
    was: str,
    head: str | None,
    branch: str | None,
) -> None:
    """Make a directory inside a linked worktree again; nothing if it was not there either.

    `was` is where git kept what belongs to it.
    """
    top = f"{outer.top}/{path}"
    if not os.path.isfile(f"{top}/.git"):
        return
    _check_links(f"{saved}/git")
    own = put_back_inner(repo, f"{saved}/git", outer.top, path, os.path.basename(was))
    others = {w.branch for w in git.list_worktrees(repo) if w.path != canonical(top)}
    moved = branch is not None and git.branch_commit(repo, branch) != head
    if head is not None and (moved or branch in others - {None}):
        git.git(own, f"--git-dir={own}", "update-ref", "--no-deref", "HEAD", head)
    inside = Checkout(top, own)
    below = tuple(
        (entry[len(path) + 1 :], mode, size)
        for entry, mode, size in manifest.kept
        if entry.startswith(f"{path}/")
    )
    old = replace(manifest, top=f"{manifest.top}/{path}", admin=was, kept=below)
    _place_submodules(inside, old)
    _settle_index(repo, inside, _bring_staged(repo, saved))


def _check_links(saved: str) -> None:
    """git has no links of its own there, and would write to what one leads to."""
    for found in walk(saved):
        is_modules = found.path.startswith("modules/") and not found.path.endswith("/config")
        if stat.S_ISLNK(found.stat.st_mode) and not is_modules:
            raise CannotRestore(f"{found.path} in {saved} is a link, which git has not made")


def _place_submodules(checkout: Checkout, manifest: Manifest) -> None:
    """Lead submodules and their git directories to each other, if they are elsewhere now."""
    if (manifest.top, manifest.admin) == (checkout.top, checkout.own):
        return
    old = f"{manifest.admin}/modules/"
    for path, mode, _ in manifest.kept:
        if not path.endswith("/.git") or not stat.S_ISREG(mode):
            continue
        top = os.path.dirname(f"{checkout.top}/{path}")
        with open(f"{top}/.git", "rb") as file:
            named = os.fsdecode(file.read(8192).rstrip(b"\n")).removeprefix("gitdir: ")
        was = os.path.normpath(os.path.join(os.path.dirname(f"{manifest.top}/{path}"), named))
        home = f"{checkout.own}/modules/{was.removeprefix(old)}"
        if not was.startswith(old) or not os.path.isfile(f"{home}/config"):
            continue
        with open(f"{top}/.git", "wb") as file:
            file.write(os.fsencode(f"gitdir: {os.path.relpath(home, top)}\n"))
        asked = ("config", "-f", f"{home}/config", "core.worktree", os.path.relpath(top, home))
        git.git(checkout.own, *asked)


def _verify(checkout: Checkout, manifest: Manifest, place: str, left: list[str]) -> None:
    """Look at what came back as the save did; CannotRestore names the first that is wrong."""
    wrong = set(saves.observe_missing(place, manifest, checkout.top, besides=left))
    if manifest.whole:
        found = survey(checkout, manifest.head)
        wrong |= found.kept.keys() - {path for path, _, _ in manifest.kept}
        wrong |= {*found.gone} ^ {*manifest.gone}
    if wrong:
        raise CannotRestore(
            f"{min(wrong)} did not come back as it was; nothing was kept of the attempt, and the "
            f"save in {place} stays"
        )
