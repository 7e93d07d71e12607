"""A worktree's work into refs and an archive that outlive it, and back.

`refs/tmuxorch/salvage/<agent>/root` is the snapshot of the worktree; `…/nested/<n>/root` and
`…/nested/<n>/refs/*` are those of the repositories inside. The archive has what git ignores
or would not give back byte for byte (`files/`), and git's notes about a half-done operation
(`git/`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tmuxorch.adapters import git
from tmuxorch.adapters.archive import pack, unpack
from tmuxorch.adapters.git import Repo
from tmuxorch.adapters.git.branches import PASSING_REFS
from tmuxorch.adapters.git.filters import unfilter
from tmuxorch.adapters.git.index import TEMPORARY
from tmuxorch.adapters.git.putback import fetch, narrow, put_back, put_back_nested, refresh
from tmuxorch.adapters.git.snapshot import (
    Facts,
    Snapshot,
    read_facts,
    take_index_snapshot,
    take_snapshot,
)
from tmuxorch.adapters.git.threatened import files_below
from tmuxorch.adapters.git.worktrees import find_admin_dir
from tmuxorch.errors import CannotSave, GitFailed, NoRepository
from tmuxorch.service.stake import Stake, outlives

CAP_BYTES = 256 * 1024 * 1024
REFS = "refs/tmuxorch/salvage"
LASTING_REFS = (*(f"--exclude={ref}" for ref in PASSING_REFS), "--glob=refs/*")
# What every worktree's git directory has: it is in the snapshot, or git makes it again.
ORDINARY = {
    *("HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG"),
    *("commondir", "gitdir", "index", "locked", "logs", "modules"),
}


@dataclass(frozen=True, slots=True)
class Saved:
    """Where the work is; nothing of a worktree that git no longer knows can be saved."""

    ref: str | None
    commit: str | None
    archive: str | None
    nested: tuple[str, ...] = ()
    archived: int = 0


def save(
    repo: Repo,
    worktree: str,
    agent_id: str,
    stake: Stake,
    *,
    archive_dir: str,
    cap_bytes: int = CAP_BYTES,
    marker: Mapping[str, str] | None = None,
) -> Saved:
    """Save the worktree for certain, or raise CannotSave; it is not touched either way.

    Every file is proved to be in the snapshot or the archive before the ref `root` is set, so
    where that ref is, the save is whole. Saving again keeps the earlier snapshot as well.
    """
    ref = f"{REFS}/{agent_id}/root"
    archive = os.path.join(archive_dir, f"{agent_id}.tar")
    try:
        own = git.git_dir(worktree) if os.path.isdir(worktree) else find_admin_dir(repo, worktree)
        if own is None:
            return Saved(None, None, None)
        root = _take(repo, worktree, own, ref, stake.branch, marker or {})
        nested = {n.path: take_snapshot(f"{worktree}/{n.path}", path=n.path) for n in stake.nested}
        members = list(_members(worktree, own, stake, {"": root, **nested}))
        archived = pack(archive, members, cap_bytes=cap_bytes) if members else 0
        kept = _keep_nested(repo, worktree, f"{REFS}/{agent_id}/nested", nested)
        git.git(repo.root, "update-ref", ref, root.commit)
        held = git.git(repo.root, "rev-parse", "-q", "--verify", ref).stdout.decode().strip()
    except (GitFailed, NoRepository) as error:
        raise CannotSave(error.message) from error
    if held != root.commit:
        raise CannotSave(f"{ref} in {repo.root} does not hold what was saved")
    return Saved(ref, root.commit, archive if members else None, kept, archived)


def _take(
    repo: Repo, worktree: str, own: str, ref: str, branch: str, marker: Mapping[str, str]
) -> Snapshot:
    """The snapshot of the worktree, or of what is left of it if its directory has gone."""
    earlier = git.git(repo.root, "rev-parse", "-q", "--verify", ref, ok=(0, 1)).stdout
    also, tip = earlier.decode().split(), git.branch_commit(repo, branch)
    if os.path.isdir(worktree):
        return take_snapshot(worktree, keepers=LASTING_REFS, also=also, tip=tip, marker=marker)
    listed = [found for found in git.list_worktrees(repo) if found.path == worktree]
    head, on = (listed[0].head, listed[0].branch) if listed else (tip, branch)
    return take_index_snapshot(
        repo.root, own, head=head, branch=on, keepers=LASTING_REFS, also=also, tip=tip
    )


def _members(
    worktree: str, own: str, stake: Stake, snapshots: Mapping[str, Snapshot]
) -> Iterator[tuple[str, str]]:
    """What goes into the archive: names there, and where each is now."""
    paths = [path.rstrip("/") for path in stake.ignored]
    for top, snapshot in snapshots.items():
        paths += [os.path.join(top, path) for path in snapshot.inexact]
        if top and os.path.isfile(f"{worktree}/{top}/.git/config"):
            paths.append(f"{top}/.git/config")
    yield from ((f"files/{path}", f"{worktree}/{path}") for path in paths)
    for name in sorted(os.listdir(own)):
        ordinary = name in ORDINARY or name.startswith((TEMPORARY, "sharedindex."))
        if not ordinary and not name.endswith(".lock") and any(files_below(f"{own}/{name}")):
            yield f"git/{name}", f"{own}/{name}"


def _keep_nested(
    repo: Repo, worktree: str, prefix: str, snapshots: Mapping[str, Snapshot]
) -> tuple[str, ...]:
    """Bring the snapshots of nested repositories here, with the refs that go with them."""
    old = git.git(repo.root, "for-each-ref", "--format=delete %(refname)", prefix).stdout
    if old:
        git.git(repo.root, "update-ref", "--stdin", stdin=old)
    kept = []
    for number, (path, snapshot) in enumerate(snapshots.items()):
        top, saved = f"{worktree}/{path}", f"{prefix}/{number}"
        own_refs = [] if outlives(worktree, top) else [f"+refs/*:{saved}/refs/*"]
        fetch(repo.root, top, f"+{snapshot.commit}:{saved}/root", *own_refs)
        kept.append(saved)
    return tuple(kept)


def restore(
    repo: Repo,
    ref: str,
    worktree: str,
    *,
    was: str,
    branch: str,
    archive: str | None,
    reason: str,
    marker: Mapping[str, str],
    on_output: Callable[[bytes], None] | None = None,
) -> None:
    """Make a worktree on `branch` that is as the saved one was, down to a half-done operation.

    `was` is what the worker's branch was called; `branch` is made if it does not exist, and
    refused if it is elsewhere than that was. A HEAD that was elsewhere is so again. The save
    itself stays. After a failure the caller removes the worktree as any other of its own.
    """
    commit = _saved_commit(repo, ref)
    facts = read_facts(repo.root, commit)
    start = _start(facts, was)
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
        options=unfilter(facts.unfiltered),
        on_output=on_output,
    )
    if facts.branch != was:
        _put_back_head(repo, worktree, facts)
    put_back(worktree, commit, facts)
    for saved in _nested_saves(repo, ref):
        put_back_nested(repo, f"{worktree}/{read_facts(repo.root, f'{saved}/root').path}", saved)
    if archive is not None:
        unpack(archive, "files", worktree)
        unpack(archive, "git", git.git_dir(worktree))
    narrow(worktree)
    refresh(worktree)


def _put_back_head(repo: Repo, worktree: str, facts: Facts) -> None:
    """HEAD on the other branch that it was on, or detached where that moved or is in use."""
    in_use = {listed.branch for listed in git.list_worktrees(repo)}
    free = facts.branch and facts.branch not in in_use
    if free and git.branch_commit(repo, str(facts.branch)) == facts.head:
        git.git(worktree, "symbolic-ref", "HEAD", f"refs/heads/{facts.branch}")
    elif facts.head:
        git.git(worktree, "update-ref", "--no-deref", "HEAD", facts.head)


def branch_start(repo: Repo, ref: str, was: str) -> str:
    """Where the worker's branch `was` at the save; GitFailed if the save is not there."""
    return _start(read_facts(repo.root, _saved_commit(repo, ref)), was)


def _saved_commit(repo: Repo, ref: str) -> str:
    done = git.git(repo.root, "rev-parse", "--verify", f"{ref}^{{commit}}")
    return done.stdout.decode().strip()


def _start(facts: Facts, was: str) -> str:
    return (facts.head if facts.branch == was else facts.tip) or facts.head or facts.staged


def _nested_saves(repo: Repo, ref: str) -> list[str]:
    """The nested repositories of a save, each after those it is inside of."""
    pattern = ref.removesuffix("/root") + "/nested/*/root"
    names = git.git(repo.root, "for-each-ref", "--format=%(refname)", pattern).stdout.decode()
    saves = [name.removesuffix("/root") for name in names.splitlines()]
    return sorted(saves, key=lambda name: int(name.rpartition("/")[2]))


def observe_unmerged(repo: Repo, ref: str) -> str | None:
    """What a save has that no lasting ref has, in words; None if it has nothing of its own."""
    found = git.git(repo.root, "rev-parse", "-q", "--verify", f"{ref}^{{commit}}", ok=(0, 1))
    if found.returncode == 1:
        return None
    commit = found.stdout.decode().strip()
    facts = read_facts(repo.root, commit)
    if facts.conflicts:
        return "conflicts that were not solved"
    if _nested_saves(repo, ref):
        return "work of repositories inside it"
    trees = {_tree(repo, oid) for oid in (commit, facts.staged, facts.head) if oid}
    if len(trees) > 1 or facts.head is None:
        return "changes that were not committed"
    own = {commit, facts.staged}
    only = git.git(repo.root, "rev-list", commit, "--not", *LASTING_REFS).stdout.decode().split()
    return "commits that no branch has" if set(only) - own else None


def _tree(repo: Repo, commit: str) -> str:
    return git.git(repo.root, "rev-parse", f"{commit}^{{tree}}").stdout.decode().strip()


def drop(repo: Repo, agent_id: str) -> None:
    """Delete the refs of a save; its objects go when git next collects garbage."""
    refs = git.git(
        repo.root, "for-each-ref", "--format=delete %(refname)", f"{REFS}/{agent_id}/"
    ).stdout
    if refs:
        git.git(repo.root, "update-ref", "--stdin", stdin=refs)
