"""A worktree's index: what is special in it, and copies of it to work with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.filters import ask_despite_filters
from tmuxorch.adapters.gitdir import git_dir

# By the length of the repository's object names: SHA-1, SHA-256.
EMPTY_BLOB = {
    40: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    64: "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}
EMPTY_STARTS = {oid[:4] for oid in EMPTY_BLOB.values()}
TEMPORARY = "tmuxorch-"
# A copied index keeps none of the settings that let git skip a look at a file.
PLAIN_INDEX = (
    *("-c", "core.sparseCheckout=false"),
    *("-c", "core.splitIndex=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.trustctime=true"),
    *("-c", "core.checkStat=default"),
    *("-c", "core.ignoreStat=false"),
)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """`tag` is git's letter: `S` skip-worktree, lower case assume-unchanged, `M` unmerged."""

    tag: str
    mode: str
    oid: str
    stage: int
    path: str


def observe_special_entries(
    worktree: str, env: Mapping[str, str] | None = None
) -> tuple[IndexEntry, ...]:
    """The entries that are more than a plain file: flagged, in conflict, or a submodule.

    Empty files are among them: so does git note a file that is only meant to be added.
    """
    asked = ("ls-files", "-z", "-v", "-s")
    answer = os.fsdecode(git(worktree, *PLAIN_INDEX, *asked, env=env).stdout)
    special = []
    for record in answer.split("\0"):
        if record.startswith(("H 100", "H 120")) and record[9:13] not in EMPTY_STARTS:
            continue
        if record:
            facts, _, path = record.partition("\t")
            tag, mode, oid, stage = facts.split(" ")
            special.append(IndexEntry(tag, mode, oid, int(stage), path))
    return tuple(special)


def hiding(worktree: str, entries: Iterable[IndexEntry]) -> list[IndexEntry]:
    """Those whose flag may hide a change; not the absent files of a sparse checkout."""
    return [
        entry
        for entry in entries
        if entry.tag.islower()
        or (entry.tag == "S" and os.path.lexists(os.path.join(worktree, entry.path)))
    ]


def observe_hidden_changes(worktree: str, entries: Iterable[IndexEntry]) -> tuple[str, ...]:
    """The files that differ from the index although git was told not to look."""
    flagged = hiding(worktree, entries)
    if not flagged:
        return ()
    with temporary_index(git_dir(worktree)) as env:
        clear_flags(worktree, flagged, env)
        asked = ("diff-files", "-z", "--name-only")
        answer = ask_despite_filters(worktree, *PLAIN_INDEX, *asked, env=env).stdout
        changed = set(os.fsdecode(answer).split("\0"))
    return tuple(entry.path for entry in flagged if entry.path in changed)


def observe_intended(worktree: str, entries: Iterable[IndexEntry]) -> tuple[str, ...]:
    """The files that `git add -N` announced and nobody has added yet."""
    if not any(entry.oid in EMPTY_BLOB.values() for entry in entries):
        return ()
    asked = (*PLAIN_INDEX, "diff-files", "-z", "--name-only", "--diff-filter=A")
    answer = ask_despite_filters(worktree, *asked).stdout
    return tuple(path for path in os.fsdecode(answer).split("\0") if path)


def set_flag(worktree: str, option: str, paths: Iterable[str]) -> None:
    """Give the entries a flag by an option of `git update-index`."""
    names = "".join(f"{path}\0" for path in paths)
    if names:
        asked = ("update-index", option, "-z", "--stdin")
        git(worktree, *PLAIN_INDEX, *asked, stdin=os.fsencode(names))


def clear_flags(worktree: str, flagged: Iterable[IndexEntry], env: Mapping[str, str]) -> None:
    """Make the index that `env` names look at these files again."""
    entries = list(flagged)
    for option, tags in (("--no-assume-unchanged", "hmsr"), ("--no-skip-worktree", "Ss")):
        paths = "".join(f"{entry.path}\0" for entry in entries if entry.tag in tags)
        if paths:
            asked = ("update-index", option, "-z", "--stdin")
            git(worktree, *PLAIN_INDEX, *asked, env=env, stdin=os.fsencode(paths))


@contextmanager
def temporary_index(own: str) -> Iterator[dict[str, str]]:
    """An environment that makes git work on a copy of the index in the git directory `own`.

    The copy lies there too, so what a crash leaves goes with the worktree.
    """
    import shutil  # here: 10 ms for the two that `new` does not need
    import tempfile

    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=own) as directory:
        index = os.path.join(directory, "index")
        if os.path.exists(os.path.join(own, "index")):
            # With its time: git trusts the stat data of files older than their index.
            shutil.copy2(os.path.join(own, "index"), index)
        yield {"GIT_INDEX_FILE": index}
