"""A worktree as commits: what is in its files, in its index and in its half-done operation.

A snapshot is a commit whose tree is the files as they are. Its message holds, after the
title, one line of JSON with what a tree cannot hold; its parents keep every commit that would
otherwise go with the worktree.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from tmuxorch.adapters.git.call import git, last_words
from tmuxorch.adapters.git.filters import ask_despite_filters, observe_filters, unfilter
from tmuxorch.adapters.git.index import (
    PLAIN_INDEX,
    IndexEntry,
    clear_flags,
    hiding,
    observe_intended,
    observe_special_entries,
    temporary_index,
)
from tmuxorch.adapters.git.proof import not_added, observe_inexact
from tmuxorch.adapters.git.status import Status, observe_index, observe_status
from tmuxorch.adapters.git.threatened import observe_threatened
from tmuxorch.adapters.gitdir import git_dir
from tmuxorch.errors import CannotSave, GitFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future

SAVE_S = 3600.0
ALL_REFS = ("--glob=refs/*",)
# No signature, no advice, and no objection to line endings or to a repository in a repository.
UNASKED = (
    *PLAIN_INDEX,
    *("-c", "core.safecrlf=false"),
    *("-c", "advice.addEmbeddedRepo=false"),
    *("-c", "i18n.commitEncoding=UTF-8"),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a snapshot's message says; `head` is None before the first commit.

    `branch` is what HEAD was on, None if detached. `staged` is the commit of the index's tree,
    `conflicts` the one of its unmerged entries, each as `<stage>/<path>`. `unfiltered` names
    the filters that could not run, so that their files are stored as they are. `assumed`,
    `skipped` and `intended` are the flags of the index, `modes` the permissions that git does
    not keep. `tip` is where the agent's branch was, `path` where a nested repository was.
    """

    head: str | None
    branch: str | None
    staged: str
    conflicts: str | None = None
    unfiltered: tuple[str, ...] = ()
    empty_directories: tuple[str, ...] = ()
    tip: str | None = None
    path: str = ""
    assumed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    intended: tuple[str, ...] = ()
    modes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that was taken; `inexact` are files that git keeps in another form.

    Of the repositories inside it holds at most the name of a commit.
    """

    commit: str
    inexact: tuple[str, ...] = ()


def take_snapshot(
    top: str,
    *,
    keepers: Sequence[str] = ALL_REFS,
    also: Sequence[str] = (),
    tip: str | None = None,
    path: str = "",
    marker: Mapping[str, str] | None = None,
) -> Snapshot:
    """Commit what is in the worktree `top` and prove that it is all there; no ref is made.

    `keepers` are rev-list arguments for the refs that outlive it, `also` are commits to keep
    in any case, `marker` is for the environment of filters. HEAD, index, stash and refs stay
    untouched. CannotSave says what could not be proved.
    """
    own = git_dir(top)
    special = observe_special_entries(top)
    flagged = hiding(top, special)
    staged_tree, conflicts_tree = _write_staged(top, own, special)
    with temporary_index(own) as env:
        clear_flags(top, flagged, env)
        unfiltered: tuple[str, ...] = ()
        env.update(marker or {})
        added = _add_all(top, env, ())
        if not_added(added.status):
            unfiltered = observe_filters(top)
            added = _add_all(top, env, unfilter(unfiltered))
        status = added.status
        if left := not_added(status):
            raise CannotSave(f"{top}/{left[0]} could not be saved: {added.said}")
        inexact = tuple(observe_inexact(top, status))
    staged, conflicts = _commit_staged(top, staged_tree, conflicts_tree, status.head)
    facts = Facts(
        head=status.head,
        branch=status.branch,
        staged=staged,
        conflicts=conflicts,
        unfiltered=unfiltered,
        empty_directories=added.empty_directories.result(),
        tip=tip,
        path=path,
        assumed=tuple(entry.path for entry in flagged if entry.tag.islower()),
        skipped=tuple(entry.path for entry in flagged if entry.tag in "Ss"),
        intended=observe_intended(top, special),
        modes=dict(_odd_modes(top, status)),
    )
    commit = _commit_all(top, own, added.tree.result(), facts, keepers, also)
    return Snapshot(commit, inexact)


def take_index_snapshot(
    directory: str,
    own: str,
    *,
    head: str | None,
    branch: str | None,
    keepers: Sequence[str],
    also: Sequence[str],
    tip: str | None,
) -> Snapshot:
    """The same of a worktree whose files have gone: its index and commits are what is left."""
    special = observe_special_entries(directory, {"GIT_INDEX_FILE": f"{own}/index"})
    tree, conflicts_tree = _write_staged(directory, own, special)
    staged, conflicts = _commit_staged(directory, tree, conflicts_tree, head)
    facts = Facts(head, branch, staged, conflicts, tip=tip)
    return Snapshot(_commit_all(directory, own, tree, facts, keepers, also))


def read_facts(directory: str, commit: str) -> Facts:
    """What the message of a snapshot says."""
    text = git(directory, "cat-file", "commit", commit).stdout.decode(errors="surrogateescape")
    try:
        said = json.loads(text.rstrip("\n").rpartition("\n")[2])
        lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
        return Facts(**said | lists)
    except (ValueError, KeyError, TypeError):
        raise GitFailed(f"{commit[:10]} in {directory} is not a snapshot of tmuxorch") from None


@dataclass(frozen=True, slots=True)
class _Added:
    """An index to which all was added: what git says of it then, and what it holds."""

    status: Status
    said: str
    tree: Future[str]
    empty_directories: Future[tuple[str, ...]]


def _add_all(top: str, env: Mapping[str, str], options: Sequence[str]) -> _Added:
    """Add what can be added, then look at what is left; the look is what counts.

    Where git itself says that all was added, the index is looked at and not the files again:
    what changes after this is for whoever deletes them to see.
    """
    from concurrent.futures import ThreadPoolExecutor  # here: 10 ms that `new` does not need

    asked = (*UNASKED, *options, "add", "-A", "--ignore-errors")
    done = git(top, *asked, env=env, ok=range(256), timeout_s=SAVE_S)
    said = last_words(done.stderr.decode(errors="replace"))
    with ThreadPoolExecutor(2) as pool:
        tree = pool.submit(_write_tree, top, env)
        empty = pool.submit(_empty_directories, top, env)
        status = observe_index(top, *UNASKED, env=env) if done.returncode == 0 else None
        status = status or observe_status(top, *UNASKED, *options, env=env)
    return _Added(status, said, tree, empty)


def _write_staged(top: str, own: str, special: Iterable[IndexEntry]) -> tuple[str, str | None]:
    """The tree of the index, and one of its unmerged entries as `<stage>/<path>`."""
    unmerged = [entry for entry in special if entry.stage]
    with temporary_index(own) as env:
        if not unmerged:
            return _write_tree(top, env), None
        gone = (f"0 {'0' * len(e.oid)}\t{e.path}\0" for e in unmerged)
        kept = (f"{e.mode} {e.oid} 0\t{e.stage}/{e.path}\0" for e in unmerged)
        other = {"GIT_INDEX_FILE": env["GIT_INDEX_FILE"] + "-conflicts"}
        for target, lines in ((env, gone), (other, kept)):
            asked = (*UNASKED, "update-index", "-z", "--index-info")
            git(top, *asked, env=target, stdin=os.fsencode("".join(lines)))
        return _write_tree(top, env), _write_tree(top, other)


def _write_tree(top: str, env: Mapping[str, str]) -> str:
    # It reads files that are as young as the index, and filters them.
    done = ask_despite_filters(top, *UNASKED, "write-tree", env=env, timeout_s=SAVE_S)
    return done.stdout.decode().strip()


def _commit_staged(
    top: str, tree: str, conflicts_tree: str | None, head: str | None
) -> tuple[str, str | None]:
    conflicts = _commit(top, conflicts_tree, [], "conflicts") if conflicts_tree else None
    return _commit(top, tree, [head] if head else [], "index"), conflicts


def _commit_all(
    top: str, own: str, tree: str, facts: Facts, keepers: Sequence[str], also: Sequence[str]
) -> str:
    known = [oid for oid in (facts.head, facts.staged, facts.conflicts, facts.tip) if oid]
    parents = [*known, *also, *observe_threatened(top, own, known, keepers)]
    return _commit(top, tree, parents, f"files\n\n{json.dumps(asdict(facts))}")


def _commit(top: str, tree: str, parents: Sequence[str], what: str) -> str:
    now = f"{int(time.time())} +0000"
    env = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "tmuxorch"), ("EMAIL", "tmuxorch@localhost"), ("DATE", now))
    }
    named = [x for parent in dict.fromkeys(parents) for x in ("-p", parent)]
    asked = (*UNASKED, "commit-tree", tree, *named, "-F", "-")
    message = f"tmuxorch: {what}\n".encode()
    return git(top, *asked, env=env, stdin=message).stdout.decode().strip()


def _odd_modes(top: str, status: Status) -> Iterator[tuple[str, int]]:
    """The permissions of changed files that a checkout would not give them."""
    os.umask(mask := os.umask(0o077))
    for entry in status.entries:
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = os.lstat(f"{top}/{entry.path}").st_mode
            usual = 0o777 if mode & stat.S_IXUSR else 0o666
            if stat.S_ISREG(mode) and stat.S_IMODE(mode) != usual & ~mask:
                yield entry.path, stat.S_IMODE(mode)


def _empty_directories(top: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Now that all else is added, a directory with nothing tracked is empty or ignored."""
    asked = (*UNASKED, "ls-files", "-z", "-o", "--directory", "--exclude-standard")
    empty = []
    for found in os.fsdecode(git(top, *asked, env=env).stdout).split("\0"):
        if not found.endswith("/") or os.path.lexists(f"{top}/{found}.git"):
            continue
        for directory, names, files in os.walk(f"{top}/{found.rstrip('/')}"):
            if not names and not files:
                empty.append(os.path.relpath(directory, top))
    return tuple(empty)
