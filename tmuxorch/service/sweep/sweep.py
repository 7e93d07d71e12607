"""Finding what lies around, and clearing it away: only what is ours, only what is safe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tmuxorch.errors import TmuxorchError
from tmuxorch.service.care.repository_lock import mend
from tmuxorch.service.context import Context
from tmuxorch.service.removal import history, legacy_saves
from tmuxorch.service.sweep import branches, files, git_remains, windows, worktrees
from tmuxorch.service.sweep.orphan import Disposal, Look, Orphan, Thing

__all__ = [
    "Disposal",
    "Orphan",
    "Thing",
    "apply",
    "convert_old_saves",
    "observe_orphans",
    "sweep_safe",
]


def observe_orphans(ctx: Context, *, keep_days: int = 0) -> list[Orphan]:
    """Everything that lies around, each with what may be done; nothing is changed.

    With `keep_days`, history older than that is among it.
    """
    look = Look(ctx)
    return [found for kind in Thing for found in _observe(look, kind, keep_days)]


def _observe(look: Look, kind: Thing, keep_days: int) -> Iterator[Orphan]:
    match kind:
        case Thing.WORKTREE:
            yield from worktrees.observe(look)
        case Thing.BRANCH:
            yield from branches.observe(look)
        case Thing.WINDOW:
            yield from windows.observe_windows(look)
        case Thing.PROCESS:
            yield from windows.observe_processes(look)
        case Thing.FILE:
            yield from files.observe(look)
            yield from git_remains.observe(look)
        case Thing.HISTORY:
            yield from _old_saves(look.ctx)
            yield from _old_history(look.ctx, keep_days)


def _old_saves(ctx: Context) -> Iterator[Orphan]:
    for entry in legacy_saves.observe(ctx):
        reason = (
            f"the save of {entry.task.name} is of an older kind, under a ref that a push publishes"
        )
        yield Orphan(
            Thing.HISTORY, reason, Disposal.SALVAGE, id=entry.task.id, repo=entry.task.repo
        )


def _old_history(ctx: Context, keep_days: int) -> Iterator[Orphan]:
    for entry in history.expired(ctx, keep_days):
        if legacy_saves.is_old(entry):
            continue
        reason = f"{entry.task.name} was removed more than {keep_days} days ago"
        unmerged = history.observe_unmerged(entry)
        if unmerged:
            reason += f", but its save has {unmerged}"
        yield Orphan(
            Thing.HISTORY,
            reason,
            Disposal.KEEP if unmerged else Disposal.REMOVE,
            id=entry.task.id,
            repo=entry.task.repo,
            command=f"tmuxorch restore {entry.task.id}" if unmerged else None,
        )


def apply(ctx: Context, orphan: Orphan, *, keep_days: int = 0) -> Orphan:
    """Clear one find away if a fresh look still allows it; the find as it is now.

    What is to be reported or kept is left alone. What has gone meanwhile counts as done.
    """
    fresh = [now for now in _observe(Look(ctx), orphan.kind, keep_days) if now.is_same_as(orphan)]
    if not fresh:
        return replace(orphan, done=True)
    now = fresh[0]
    if now.action not in (Disposal.REMOVE, Disposal.SALVAGE):
        return now
    match now.kind:
        case Thing.WORKTREE:
            worktrees.clear(ctx, now)
        case Thing.BRANCH:
            branches.clear(ctx, now)
        case Thing.WINDOW:
            windows.close_window(ctx, now)
        case Thing.FILE if now.repo is not None:
            git_remains.clear(ctx, now)
        case Thing.FILE:
            files.clear(now)
        case Thing.HISTORY:
            entry = ctx.store.history_entry(now.id or "")
            if entry is not None and legacy_saves.is_old(entry):
                legacy_saves.convert(ctx, entry)
            elif entry is not None:
                history.forget(ctx, entry)
        case Thing.PROCESS:
            return now
    return replace(now, done=True)


def sweep_safe(ctx: Context, told: set[str]) -> list[Orphan]:
    """Clear what cannot hold work (trash, run directories, half-written files): for the watcher.

    Saves of an older kind are made anew, each tried once. One that cannot be cleared
    stops no other. It is among the result, not done, unless it is in `told`, where its name is
    added.
    """
    for repo in sorted({agent.task.repo for agent in ctx.store.agents()}):
        mend(ctx, repo)
    done = []
    for orphan in list(files.observe_safe(Look(ctx))):
        if orphan.action is not Disposal.REMOVE:
            continue
        try:
            files.clear(orphan)
        except (TmuxorchError, OSError) as failure:
            if orphan.name not in told:
                told.add(orphan.name)
                done.append(replace(orphan, action=Disposal.KEEP, reason=str(failure)))
        else:
            told.discard(orphan.name)
            done.append(replace(orphan, done=True))
    return [*done, *convert_old_saves(ctx, told)]


def convert_old_saves(ctx: Context, told: set[str]) -> list[Orphan]:
    """Make saves of an older kind anew, but those in `told`, where failures are added."""
    done = []
    for orphan in [found for found in _old_saves(ctx) if found.name not in told]:
        try:
            done.append(apply(ctx, orphan))
        except (TmuxorchError, OSError) as failure:
            told.add(orphan.name)
            done.append(replace(orphan, action=Disposal.KEEP, reason=str(failure)))
    return done
