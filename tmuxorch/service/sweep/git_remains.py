"""What killed gits left in our repositories, for `sweep` and `doctor` to show and clear away."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import at_work
from tmuxorch.adapters.git.admin import canonical, list_admins
from tmuxorch.adapters.git.lockfiles import LockFile, list_locks
from tmuxorch.adapters.git.survey import TEMPORARY
from tmuxorch.adapters.system.locks import read_cut
from tmuxorch.core.literal import pasteable
from tmuxorch.core.view import age
from tmuxorch.errors import sure
from tmuxorch.model import Agent, State
from tmuxorch.service.care import left_locks, wreckage
from tmuxorch.service.care.repository_lock import repo_lock
from tmuxorch.service.care.wreckage import Remedy
from tmuxorch.service.context import Context
from tmuxorch.service.sweep.orphan import Disposal, Look, Orphan, Thing, size_of

if TYPE_CHECKING:
    from tmuxorch.adapters.git.location import Repo

# What is younger may be in the making.
YOUNG_S = 60.0
SAVING_S = 3600.0
RESTING = (State.EXITED, State.LOST, State.QUARANTINED)


def observe(look: Look) -> Iterator[Orphan]:
    """Half-made worktrees, locks and temporary indexes; only what is provably ours may go."""
    for repo in look.repos.values():
        agents = [agent for agent in look.agents.values() if agent.task.repo == repo.root]
        yield from _wrecks(look.ctx, repo, agents)
        yield from _locks(look.ctx, repo, agents)
        yield from _temporary_indexes(repo, agents)


def _wrecks(ctx: Context, repo: Repo, agents: list[Agent]) -> Iterator[Orphan]:
    for wreck in wreckage.observe(ctx, repo, agents):
        path = wreck.admin.directory
        age_s = _age_s(path)
        if age_s is None or 0 <= age_s < YOUNG_S:
            continue
        ours = wreck.remedy is not Remedy.TELL
        yield Orphan(
            Thing.FILE,
            f"{wreck.words}, {_ago(age_s)}",
            Disposal.REMOVE if ours else Disposal.REPORT,
            path=path,
            repo=repo.root,
            bytes=size_of(path),
            command=None if ours else wreck.command,
        )


def _locks(ctx: Context, repo: Repo, agents: list[Agent]) -> Iterator[Orphan]:
    now = time.time()
    old = [lock for lock in list_locks(repo) if not 0 <= now - lock.made_at < YOUNG_S]
    if not old:
        return
    users = at_work.observe_at_work(left_locks.places_of(repo, agents))
    for lock in old:
        age_s = now - lock.made_at
        why = f"a git that was killed left it, {_ago(age_s)}"
        seen = at_work.can_see_files() or age_s >= left_locks.OLD_UNSEEN_S
        if users:
            why = f"process {users[0]} may be using it, {_ago(age_s)}"
        ours = not users and seen and _is_ours(ctx, repo, agents, lock)
        yield Orphan(
            Thing.FILE,
            why,
            Disposal.REMOVE if ours else Disposal.REPORT,
            path=lock.path,
            repo=repo.root,
            bytes=0,
            command=None if ours or users else pasteable(["rm", lock.path]),
        )


def _is_ours(ctx: Context, repo: Repo, agents: list[Agent], lock: LockFile) -> bool:
    """A lock of our refs or of a resting worker, or one made while a command of ours died."""
    branches = {
        f"refs/heads/{agent.task.branch}.lock" for agent in agents if agent.task.branch_made
    }
    if os.path.relpath(lock.path, repo.common_dir) in branches:
        return True
    if left_locks.is_named_ours(repo, lock):
        return True
    cut = read_cut(ctx.lock_note(repo.root))
    if cut is not None and left_locks.was_made_by(lock, cut):
        return True
    resting = {canonical(agent.task.worktree) for agent in agents if agent.state in RESTING}
    own = [admin for admin in list_admins(repo) if admin.path in resting]
    return any(lock.path.startswith(admin.directory + os.sep) for admin in own)


def _temporary_indexes(repo: Repo, agents: list[Agent]) -> Iterator[Orphan]:
    """Copies of an index that a save works on; one that is cut off leaves it."""
    idle = {canonical(agent.task.worktree) for agent in agents if agent.state is not State.REMOVING}
    for admin in list_admins(repo):
        if admin.path not in idle:
            continue
        for name in os.listdir(admin.directory):
            path = os.path.join(admin.directory, name)
            if name.startswith(TEMPORARY) and (_age_s(path) or 0.0) > SAVING_S:
                why = "a save that was cut off left its index"
                yield Orphan(
                    Thing.FILE,
                    why,
                    Disposal.REMOVE,
                    path=path,
                    repo=repo.root,
                    bytes=size_of(path),
                )


def _age_s(path: str) -> float | None:
    with suppress(OSError):
        return time.time() - os.lstat(path).st_mtime
    return None


def _ago(age_s: float) -> str:
    return f"{age(age_s)} ago" if age_s >= 0 else "at a time that is still to come"


def clear(ctx: Context, orphan: Orphan) -> None:
    """Mend the repository; a lock or an index that a fresh look found to be left goes too."""
    from tmuxorch.adapters.git.deletion import delete_directory

    path = sure(orphan.path, "what git left was found by its path")
    with repo_lock(ctx, sure(orphan.repo, "what git left is in a repository")):
        if path.endswith(".lock"):
            with suppress(FileNotFoundError):
                os.unlink(path)
        elif os.path.basename(path).startswith(TEMPORARY):
            delete_directory(path)
