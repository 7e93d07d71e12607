"""What a checkout's files are against its index and HEAD, as `git status` tells it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from tmuxorch.adapters.git.checkout import Checkout, checkout_at

UNTRACKED, IGNORED = "??", "!!"
FORMAT = ("--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--no-renames")
# Neither the person's nor the repository's settings may hide a file. git would look into a
# submodule by the submodule's own settings, so that is not left to it.
SCOPE = ("--untracked-files=all", "--ignore-submodules=all")


@dataclass(frozen=True, slots=True)
class Entry:
    """One path; `xy` is git's pair (index against HEAD, files against index), `.` for no change.

    A nested repository and a directory that is ignored as a whole end in `/`.
    """

    path: str
    xy: str

    @property
    def unmerged(self) -> bool:
        return "U" in self.xy or self.xy in ("AA", "DD")

    @property
    def staged(self) -> bool:
        return self.xy[0] not in ".?!" and not self.unmerged

    @property
    def unstaged(self) -> bool:
        return self.xy[1] not in ".?!" or self.unmerged


@dataclass(frozen=True, slots=True)
class TreeStatus:
    """`head` is None before the first commit, `branch` None when detached."""

    head: str | None
    branch: str | None
    entries: tuple[Entry, ...]


def observe_status(place: Checkout | str, *, ignored: bool = False) -> TreeStatus:
    """Ask once; a `str` is the top of a worktree whose `.git` is the person's own."""
    checkout = checkout_at(place) if isinstance(place, str) else place
    shown = "--ignored=matching" if ignored else "--ignored=no"
    answer = checkout.ask("status", *FORMAT, *SCOPE, shown).stdout
    records = os.fsdecode(answer).split("\0")
    told = {key: value for key, _, value in (line[2:].partition(" ") for line in records[:2])}
    head, branch = told["branch.oid"], told["branch.head"]
    return TreeStatus(
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        entries=tuple(_entries(records[2:])),
    )


def _entries(records: list[str]) -> Iterator[Entry]:
    for record in records:
        kind, _, rest = record.partition(" ")
        if kind == "1":
            xy, _, _, _, _, _, _, path = rest.split(" ", 7)
            yield Entry(path, xy)
        elif kind == "u":
            xy, _, _, _, _, _, _, _, _, path = rest.split(" ", 9)
            yield Entry(path, xy)
        elif kind in ("?", "!"):
            yield Entry(rest, kind * 2)
