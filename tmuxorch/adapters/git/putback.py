"""A snapshot back in a worktree: its files, its index, and the repositories inside."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tmuxorch.adapters.git.call import CHECKOUT_S, git
from tmuxorch.adapters.git.index import PLAIN_INDEX
from tmuxorch.adapters.git.snapshot import Facts, read_facts, unfilter
from tmuxorch.adapters.gitdir import Repo

RESTORED = "refs/tmuxorch/restored"
# Objects of any name from a repository on this machine, whatever the person's settings.
FETCH = (
    *("-c", "protocol.file.allow=always"),
    *("-c", "transfer.fsckObjects=false"),
    *("-c", "fetch.fsckObjects=false"),
    *("-c", "maintenance.auto=false"),
    *("-c", "gc.auto=0"),
    "fetch",
    "--quiet",
    "--no-tags",
    "--update-head-ok",
    "--no-write-fetch-head",
    "--no-recurse-submodules",
    "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack",
)


def fetch(into: str, source: str, *refspecs: str) -> None:
    """Bring objects of any name, and all they need, from the repository `source` on this disk."""
    git(into, *FETCH, os.path.abspath(source), *refspecs, timeout_s=CHECKOUT_S)


def put_back(top: str, commit: str, facts: Facts) -> None:
    """Make the files of a fresh worktree those of the snapshot, and the index its index."""
    options = (*PLAIN_INDEX, *unfilter(facts.unfiltered))
    git(top, *options, "read-tree", "--reset", "-u", commit, timeout_s=CHECKOUT_S)
    for path in facts.empty_directories:
        os.makedirs(f"{top}/{path}", exist_ok=True)
    git(top, *options, "read-tree", "--reset", facts.staged)
    if facts.conflicts:
        git(top, *options, "update-index", "-z", "--index-info", stdin=_conflicts(top, facts))
    refresh(top, options)


def refresh(top: str, options: Sequence[str] = ()) -> None:
    """Let the index know the files again; status 1 is git's word for "some differ"."""
    git(top, *options, "update-index", "-q", "--refresh", ok=(0, 1))


def _conflicts(top: str, facts: Facts) -> bytes:
    answer = git(top, "ls-tree", "-r", "-z", str(facts.conflicts)).stdout
    lines = []
    for record in os.fsdecode(answer).split("\0")[:-1]:
        about, _, name = record.partition("\t")
        mode, _, oid = about.split(" ")
        stage, _, path = name.partition("/")
        lines.append(f"{mode} {oid} {stage}\t{path}\0")
    return os.fsencode("".join(lines))


def put_back_nested(repo: Repo, top: str, saved: str) -> None:
    """Make a repository at `top` of the refs below `saved` and the snapshot `saved`/root."""
    facts = read_facts(repo.root, f"{saved}/root")
    os.makedirs(top, exist_ok=True)
    git(top, "init", "--quiet", "--template=")
    fetch(top, repo.root, f"+{saved}/root:{RESTORED}", f"+{saved}/refs/*:refs/*")
    if facts.branch:
        git(top, "symbolic-ref", "HEAD", f"refs/heads/{facts.branch}")
    if facts.head:
        git(top, "update-ref", *([] if facts.branch else ["--no-deref"]), "HEAD", facts.head)
    put_back(top, RESTORED, facts)
