"""What a worktree's files are against its index and HEAD, as `git status` tells it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.filters import ask_despite_filters

SUBMODULE = "160000"
UNTRACKED, IGNORED = "??", "!!"
FORMAT = ("--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--no-renames")
# Neither the person's nor the repository's settings may hide a file.
SCOPE = ("--untracked-files=all", "--ignore-submodules=none")


@dataclass(frozen=True, slots=True)
class Entry:
    """One path; `xy` is git's pair (index against HEAD, files against index), `.` for no change.

    `submodule` is `N...` for a file, else `S` and C, M, U for new commits, edits and new files.
    A nested repository and a directory that is ignored as a whole end in `/`.
    """

    path: str
    xy: str
    submodule: str = "N..."
    mode: str = ""
    index_oid: str = ""

    @property
    def unmerged(self) -> bool:
        return "U" in self.xy or self.xy in ("AA", "DD")


@dataclass(frozen=True, slots=True)
class Status:
    """`head` is None before the first commit, `branch` None when detached."""

    head: str | None
    branch: str | None
    entries: tuple[Entry, ...]


def observe_status(
    worktree: str, *options: str, ignored: bool = False, env: Mapping[str, str] | None = None
) -> Status:
    """Ask once; `options` are git's own (`-c name=value`), `env` may name another index."""
    shown = "--ignored=matching" if ignored else "--ignored=no"
    asked = (*options, "status", *FORMAT, *SCOPE, shown)
    answer = ask_despite_filters(worktree, *asked, env=env).stdout
    records = os.fsdecode(answer).split("\0")
    told = {key: value for key, _, value in (line[2:].partition(" ") for line in records[:2])}
    head, branch = told["branch.oid"], told["branch.head"]
    return Status(
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        entries=tuple(_entries(records[2:])),
    )


def observe_index(
    worktree: str, *options: str, env: Mapping[str, str] | None = None
) -> Status | None:
    """The same of the index alone, against HEAD: no file is looked at; None without a commit."""
    asked = ("rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD")
    done = git(worktree, *asked, ok=(0, 128))
    if done.returncode != 0:
        return None
    head, name = os.fsdecode(done.stdout).splitlines()
    shown = ("diff-index", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=none")
    records = iter(os.fsdecode(git(worktree, *options, *shown, head, env=env).stdout).split("\0"))
    entries = []
    for about, path in zip(records, records, strict=False):
        _, mode, _, oid, letter = about.split(" ")
        submodule = "S..." if mode == SUBMODULE else "N..."
        entries.append(Entry(path, f"{letter}.", submodule, mode, oid))
    branch = name.removeprefix("refs/heads/") if name != "HEAD" else None
    return Status(head, branch, tuple(entries))


def _entries(records: list[str]) -> Iterator[Entry]:
    for record in records:
        kind, _, rest = record.partition(" ")
        if kind == "1":
            xy, submodule, _, _, mode, _, oid, path = rest.split(" ", 7)
            yield Entry(path, xy, submodule, mode, oid)
        elif kind == "u":
            xy, submodule, _, _, _, mode, _, _, _, path = rest.split(" ", 9)
            yield Entry(path, xy, submodule, mode)
        elif kind in ("?", "!"):
            yield Entry(rest, kind * 2)
