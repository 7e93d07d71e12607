"""Taking a worktree out of the way: set aside by one rename, looked at there, kept or deleted.

The directory is renamed before anybody looks at it, to where its save is to be. So what is
looked at is what is kept: nothing is copied, and who still writes through an open file writes
into the save.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.changes import WorkStats
from tmuxorch.adapters.git.deletion import delete_directory, prune_directory
from tmuxorch.adapters.git.inner import observe_inner
from tmuxorch.adapters.git.worktrees import find_admin_dir
from tmuxorch.adapters.store import saves
from tmuxorch.adapters.system import processes
from tmuxorch.adapters.system.treewalk import walk
from tmuxorch.core.progress import Phase
from tmuxorch.errors import CannotSave, GitFailed, TmuxorchError
from tmuxorch.model import EventKind
from tmuxorch.service import places
from tmuxorch.service.care.insisting import insist
from tmuxorch.service.care.repository_lock import repo_lock
from tmuxorch.service.removal import salvage
from tmuxorch.service.removal.work import Work, observe_work

if TYPE_CHECKING:
    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context
    from tmuxorch.service.removal.salvage import Saved

# How long somebody else's open file is waited for: a look by an editor or a git of the person's.
WRITERS_S = 1.0
LATE_TRIES = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """What was set aside: its save, if there was anything to save, and what was looked at.

    `work` is None for a save that was final before.
    """

    saved: Saved | None
    work: Work | None
    notes: tuple[tuple[int, ...] | None, ...]


def take(ctx: Context, repo: Repo, agent: Agent, cap_bytes: int) -> Taken:
    """Set the worktree aside and save it.

    Where it cannot be saved it is put back, and CannotSave or GitFailed says why. That a git
    was killed is no reason.
    """
    place = places.of_save(ctx, agent)
    if saves.is_final(place):
        return Taken(salvage.saved_in(agent.task.id, place), None, ())
    insist(ctx, agent.task.repo, lambda: _set_aside(ctx, repo, agent, place))
    try:
        ctx.checkpoint("remove:moved")
        _wait_for_writers(f"{place}/files")
        return insist(ctx, agent.task.repo, lambda: _save(ctx, repo, agent, place, cap_bytes))
    except Exception:
        put_back(agent, place)
        raise


def count_work(repo: Repo, agent: Agent, taken: Taken, place: str) -> WorkStats | None:
    """How much was done, of what is set aside; None if there is nothing to count it in."""
    work = taken.work
    if work is None or work.found is None:
        return None
    if work.stake.empty and work.head == agent.task.base_commit:
        return WorkStats(work.head, 0, 0, 0, 0)
    try:
        return git.work_stats(
            repo,
            agent.task.worktree,
            agent.task.base_commit,
            admin=agent.admin,
            top=f"{place}/files",
        )
    except GitFailed:
        return None  # numbers for a person, no reason to keep what is saved


def _set_aside(ctx: Context, repo: Repo, agent: Agent, place: str) -> None:
    """Rename the worktree, if it is the very one that was made, into the place of its save."""
    files = f"{place}/files"
    if os.path.lexists(files):
        return  # an earlier attempt came this far
    if not os.path.isdir(agent.task.worktree) or os.path.islink(agent.task.worktree):
        return
    with repo_lock(ctx, agent.task.repo):
        # One that git has forgotten is ours by its record and by where it is, and saved as files.
        listed = {worktree.path for worktree in git.list_worktrees(repo)}
        root = os.path.realpath(ctx.worktrees_dir)
        path = os.path.realpath(agent.task.worktree)
        if path in listed or not path.startswith(f"{root}/"):
            git.is_ours(repo, agent.task.worktree, ctx.lock_reason(agent))
        try:
            os.makedirs(place, mode=0o700, exist_ok=True)
            os.rename(agent.task.worktree, files)
        except OSError as error:
            why = f"{agent.task.worktree} could not be moved to {place}: {error.strerror}"
            raise GitFailed(why) from None


def put_back(agent: Agent, place: str) -> None:
    """Undo the rename; a place where nothing is kept goes."""
    if os.path.lexists(f"{place}/files") and not os.path.lexists(agent.task.worktree):
        os.makedirs(os.path.dirname(agent.task.worktree), mode=0o700, exist_ok=True)
        os.rename(f"{place}/files", agent.task.worktree)
    if os.path.isdir(place) and not os.path.lexists(f"{place}/files"):
        with suppress(GitFailed):  # what stays there says that it is no whole save
            delete_directory(place)


def _wait_for_writers(files: str) -> None:
    """CannotSave if somebody keeps a file open for writing: what it writes is not done."""
    deadline = time.monotonic() + WRITERS_S
    while writers := processes.observe_writers_below(files):
        if time.monotonic() > deadline:
            raise CannotSave(f"process {writers[0]} {writers[0].why}: end it, then try again")
        time.sleep(0.05)


def _save(ctx: Context, repo: Repo, agent: Agent, place: str, cap_bytes: int) -> Taken:
    """Save what is at stake, and copies that nobody changed: their originals may change."""
    notes = _notes(
        find_admin_dir(repo, agent.task.worktree, recorded=agent.admin),
        *(one.own for one in observe_inner(repo, agent.task.worktree)),
    )
    files = f"{place}/files"
    top = files if os.path.lexists(files) else None
    work = observe_work(repo, agent, top=top)
    if work.stake.special:
        what = ", ".join(work.stake.special[:3])
        ctx.narrate(f"FIFOs, sockets and devices are not saved, of {agent.task.name}: {what}")
    if work.stake.empty and not work.copied and not work.settled:
        return Taken(None, work, notes)
    ctx.enter(agent, Phase.SAVING)
    os.makedirs(place, mode=0o700, exist_ok=True)
    saved = salvage.save(repo, agent.task.id, agent.task.worktree, work, place, cap_bytes=cap_bytes)
    return Taken(saved, work, notes)


def clear(ctx: Context, repo: Repo, agent: Agent, taken: Taken | None, cap_bytes: int) -> None:
    """The agent is in the history: make git forget the worktree, and delete what is not kept.

    `taken` is None if another command set it aside. What was written meanwhile is saved first.
    CannotSave if that cannot be done; the directory is back in its place then.
    """
    place = places.of_save(ctx, agent)
    entry = ctx.store.history_entry(agent.task.id)
    kept = entry is not None and entry.archive is not None
    if saves.is_final(place):
        _forget(ctx, repo, agent)
        return
    late = None
    for attempt in range(LATE_TRIES + 1):
        if taken is not None and (late := _written_since(taken, place)) is None:
            break
        if attempt == LATE_TRIES:
            put_back(agent, place)
            raise CannotSave(f"{late} was written while it was being removed")
        try:
            taken = insist(ctx, agent.task.repo, lambda: _save(ctx, repo, agent, place, cap_bytes))
        except Exception:
            put_back(agent, place)
            raise
        if taken.saved is not None:
            saved = taken.saved
            ctx.store.amend_history(agent.task.id, salvage_ref=saved.ref, archive=saved.place)
            kept = True
        ctx.checkpoint("remove:saved-again")
    if kept:
        saves.close(place)
    _forget(ctx, repo, agent)
    if not kept:
        _delete(ctx, agent, place)
    elif taken is not None and taken.work is not None and taken.work.found is not None:
        prune_directory(f"{place}/files", taken.work.found.same, taken.work.found.kept)


def _forget(ctx: Context, repo: Repo, agent: Agent) -> None:
    """All is saved: that git still lists the worktree is something for a sweep."""
    try:
        with repo_lock(ctx, agent.task.repo):
            git.forget_worktree(repo, agent.task.worktree, reason=ctx.lock_reason(agent))
    except (TmuxorchError, OSError) as error:
        ctx.store.record(agent, EventKind.GIT_DIRECTORY_LEFT, str(error))


def _delete(ctx: Context, agent: Agent, place: str) -> None:
    """What is looked at and holds nothing goes by way of the trash, where a sweep finds it."""
    trash = places.trash_of(agent.task.worktree, agent.task.id)
    try:
        if os.path.lexists(f"{place}/files"):
            os.makedirs(os.path.dirname(trash), mode=0o700, exist_ok=True)
            os.rename(f"{place}/files", trash)
            delete_directory(trash, background=True)
        if os.path.isdir(place):
            delete_directory(place)
    except (GitFailed, OSError) as error:
        ctx.store.record(agent, EventKind.TRASH_LEFT, str(error))


def _written_since(taken: Taken, place: str) -> str | None:
    """What is otherwise than at the look: content, mode and name all show in the ctime.

    Compared for being the same and not for being later: a clock may be set back meanwhile.
    """
    work = taken.work
    if work is None:
        return None
    found = work.found
    if found is not None:
        now = {entry.path: entry.stat.st_ctime_ns for entry in walk(f"{place}/files")}
        # Those that forbade reading were opened for the save.
        opened = tuple(f"{path}/" for path in found.sealed)
        for path, _ in now.items() ^ found.times.items():
            if path not in found.sealed and not path.startswith(opened):
                return path
    notes = _notes(work.own, *(one.own for one in work.inner))
    return work.own if work.own is not None and notes != taken.notes else None


def _notes(*directories: str | None) -> tuple[tuple[int, ...] | None, ...]:
    """How git's own files for a worktree look: they change with a commit or what is staged."""
    looks: list[tuple[int, ...] | None] = []
    for own in directories:
        for name in ("HEAD", "index", "logs/HEAD") if own is not None else ():
            try:
                facts = os.stat(f"{own}/{name}")
                looks.append((facts.st_ino, facts.st_ctime_ns, facts.st_size))
            except OSError:
                looks.append(None)
    return tuple(looks)
