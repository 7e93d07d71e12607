"""A snapshot back in a worktree: its files, its index, and the repositories inside."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tmuxorch.adapters.git.call import CHECKOUT_S, git
from tmuxorch.adapters.git.filters import unfilter
from tmuxorch.adapters.git.index import PLAIN_INDEX, set_flag
from tmuxorch.adapters.git.proof import hash_file
from tmuxorch.adapters.git.snapshot import Facts, read_facts
from tmuxorch.adapters.gitdir import Repo, git_dir

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
    if _undo_conversions(top, commit, facts):
        # What the index noted of those files is wrong now, and git would not look again.
        os.unlink(f"{git_dir(top)}/index")
    for path, mode in facts.modes.items():
        os.chmod(f"{top}/{path}", mode)
    for path in facts.empty_directories:
        os.makedirs(f"{top}/{path}", exist_ok=True)
    git(top, *options, "read-tree", "--reset", facts.staged)
    if facts.conflicts:
        git(top, *options, "update-index", "-z", "--index-info", stdin=_conflicts(top, facts))
    set_flag(top, "--assume-unchanged", facts.assumed)
    set_flag(top, "--skip-worktree", facts.skipped)
    if facts.intended:
        paths = os.fsencode("".join(f":(literal){path}\0" for path in facts.intended))
        named = ("--pathspec-from-file=-", "--pathspec-file-nul")
        git(top, *options, "add", "--force", "-N", *named, stdin=paths)
    refresh(top, options)


def _undo_conversions(top: str, commit: str, facts: Facts) -> bool:
    """Give changed files the very bytes of their objects, whatever line ends a checkout makes."""
    changed = False
    base = facts.head or git(top, "hash-object", "-t", "tree", "--stdin", stdin=b"").stdout.decode()
    asked = ("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=d", base.strip(), commit)
    records = iter(os.fsdecode(git(top, *asked).stdout).split("\0")[:-1])
    for about, name in zip(records, records, strict=True):
        _, mode, _, oid, _ = about.split(" ")
        path = f"{top}/{name}"
        if mode.startswith("100") and hash_file(path, oid) != oid:
            with open(path, "wb") as file:
                file.write(git(top, "cat-file", "blob", oid).stdout)
            changed = True
    return changed


def refresh(top: str, options: Sequence[str] = ()) -> None:
    """Let the index know the files again, as far as filters let git read them.

    Status 1 is git's word for "some differ".
    """
    git(top, *options, "update-index", "-q", "--refresh", ok=(0, 1, 128))


def narrow(top: str) -> None:
    """Take the files away again that a sparse checkout leaves out; changed ones stay."""
    if os.path.exists(f"{git_dir(top)}/info/sparse-checkout"):
        wanted = git(top, "config", "--bool", "core.sparseCheckout", ok=(0, 1)).stdout
        if wanted.strip() == b"true":
            git(top, "sparse-checkout", "reapply", timeout_s=CHECKOUT_S)


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
