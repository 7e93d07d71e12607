"""Removed workers: which one is meant, what is saved of it, and when it may be forgotten."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.deletion import delete_directory
from tmuxorch.core import naming
from tmuxorch.errors import AmbiguousName, NoRepository, UnknownName
from tmuxorch.service.care.repository_lock import repo_lock
from tmuxorch.service.removal import legacy_saves, salvage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tmuxorch.model import HistoryEntry
    from tmuxorch.service.context import Context

DAY_S = 86_400.0
_LISTED_MAX = 10


def matching(
    ctx: Context, query: str, *, repo: str | None = None, whole_names: bool = False
) -> list[HistoryEntry]:
    """The entries that a name or id can mean as `naming.match` says, newest first."""
    found = naming.match(query, ctx.store.past.names(repo), whole_names=whole_names)
    return ctx.store.entries([agent_id for _, agent_id in found])


def find(ctx: Context, query: str, *, here: str | None = None) -> HistoryEntry:
    """The entry meant by a name, an id or a unique beginning; the repository `here` goes first.

    Of several of one name the newest is meant.
    """
    for repo in (here, None) if here else (None,):
        found = matching(ctx, query, repo=repo)
        if len({(entry.task.name, entry.task.repo) for entry in found}) == 1:
            return found[0]
        if found:
            listed = [
                f"{e.task.name} ({e.task.id}, {os.path.basename(e.task.repo)})"
                for e in found[:_LISTED_MAX]
            ]
            if len(found) > _LISTED_MAX:
                listed.append(f"{len(found) - _LISTED_MAX} more")
            raise AmbiguousName(
                f"{query[:60]!r} fits {len(found)} removed workers: {', '.join(listed)}; say "
                "more of it, or an id"
            )
    raise UnknownName(f"there is no removed worker {query[:60]!r}; `tmuxorch history` lists them")


def expired(ctx: Context, keep_days: int) -> Iterator[HistoryEntry]:
    """The entries older than that, oldest first; none if all are to be kept."""
    if keep_days > 0:
        yield from ctx.store.past.older_than(ctx.clock() - keep_days * DAY_S)


def observe_unmerged(entry: HistoryEntry) -> str | None:
    """What would be lost with the entry's save, in words; None if all of it is elsewhere."""
    if legacy_saves.is_old(entry):
        return "whatever is in it: it is of an older kind"
    if entry.archive is None or not os.path.exists(entry.archive):
        return None
    try:
        repo = git.find_repo(entry.task.repo)
    except NoRepository:
        return f"whatever is in {entry.task.repo}, which is not there to be looked at"
    return salvage.observe_unmerged(repo, entry.archive)


def forget(ctx: Context, entry: HistoryEntry) -> None:
    """Drop the entry and its save; the row goes last, so that it can be carried on."""
    if entry.salvage_ref is not None:
        try:
            repo = git.find_repo(entry.task.repo)
        except NoRepository:
            pass
        else:
            with repo_lock(ctx, entry.task.repo):
                salvage.drop(repo, entry.task.id, entry.archive)
    if entry.archive is not None and os.path.exists(entry.archive):
        delete_directory(entry.archive)
    ctx.store.drop_history(entry.task.id)
