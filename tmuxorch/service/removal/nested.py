"""Repositories inside a worktree: how much work of their own goes with it."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Collection
from functools import partial

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.checkout import Checkout
from tmuxorch.adapters.git.inner import Inner
from tmuxorch.adapters.git.status import observe_status
from tmuxorch.adapters.git.survey import SUBMODULE, Survey, survey
from tmuxorch.core.stake import Nested
from tmuxorch.errors import NoRepository, TmuxorchError

# For how long one repository inside after the other is looked at.
INSIDE_S = 30.0
UNREAD = partial(Nested, commits=0, changes=1)


def observe_nested(
    top: str,
    own: str | None,
    found: Survey,
    ignored: Collection[str],
    linked: Collection[Inner],
) -> list[Nested]:
    """Those that are work: all but submodules that are just what the commit names."""
    repositories = []
    deadline = time.monotonic() + INSIDE_S
    repositories += [UNREAD(one.path) for one in linked if one.path not in found.nested]
    worktrees = {one.path: one for one in linked}
    for path in found.nested:
        entry = found.index.entries.get(path)
        if path in worktrees:
            repositories.append(_look_into(f"{top}/{path}", worktrees[path]))
            continue
        inner = _inner(f"{top}/{path}", top, own)
        if inner is None:
            continue  # a `.git` that is none: files like any others
        submodule = entry is not None and entry.mode == SUBMODULE
        looked = Nested(path, 0, 0)
        if time.monotonic() > deadline:
            looked = UNREAD(path)
        elif not is_below(path, ignored):
            named = entry.oid if entry and submodule else None
            looked = _look_inside(path, inner, named, scratch=own or tempfile.gettempdir())
        if not submodule or looked.commits or looked.changes:
            repositories.append(looked)
    return repositories


def _inner(place: str, top: str, own: str | None) -> Checkout | None:
    """A repository inside, if its git directory is there too or among the submodules' own."""
    try:
        inner = git.git_dir(place)
    except (NoRepository, OSError):
        return None
    homes = [os.path.realpath(top), *([os.path.realpath(f"{own}/modules")] if own else [])]
    inside = inner.startswith(tuple(f"{home}/" for home in homes))
    return Checkout(place, inner, foreign=True) if inside else None


def _look_into(place: str, inner: Inner) -> Nested:
    """How much another linked worktree has uncommitted; its commits are looked at with ours."""
    if not inner.usable:
        return UNREAD(inner.path)
    try:
        checkout = Checkout(place, inner.own)
        found = survey(checkout, inner.head)
        entries = observe_status(checkout).entries
        return Nested(inner.path, 0, len({entry.path for entry in entries} | found.changed))
    except (TmuxorchError, OSError, ValueError):
        return UNREAD(inner.path)


def _look_inside(path: str, inner: Checkout, named: str | None, *, scratch: str) -> Nested:
    """How much a repository has of its own; one that git cannot read counts as one change."""
    try:
        if inner.may_never_answer:
            return UNREAD(path)
        asked = ("rev-list", "--count", "--all", "--reflog", "--not", "--remotes")
        commits = int(inner.ask(*asked).stdout or 0)
        at = inner.ask("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1))
        head = at.stdout.decode().strip() or None
        found = survey(inner, head, scratch=scratch)
        entries = observe_status(inner).entries
        changed = {entry.path for entry in entries} | found.changed - found.untouched
        if named is not None:
            # What a submodule ignores goes as well, and nobody else counts it.
            changed |= {p for p, facts in found.kept.items() if not is_dull(facts, found, p)}
        moved = head is not None and named not in (None, head) and not commits
        return Nested(path, commits, len(changed) + moved)
    except (TmuxorchError, OSError, ValueError):
        return UNREAD(path)


def is_dull(facts: os.stat_result, found: Survey, path: str) -> bool:
    """Empty directories, odd permissions and things that hold nothing are no work."""
    if stat.S_ISDIR(facts.st_mode):
        return path not in found.sealed
    return not (stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode))


def is_below(path: str, ignored: Collection[str]) -> bool:
    """Whether git ignores the path, or a directory that it is in."""
    if path in ignored:
        return True
    end = path.find("/")
    while end >= 0:
        if path[: end + 1] in ignored:
            return True
        end = path.find("/", end + 1)
    return f"{path}/" in ignored
