"""Lock files that a killed git left: those that are provably ours go, the others are told.

Ours are the locks of our workers' branches and of our own refs; and any that was made while a
command of ours held the repository and died, since the gits of that command are ended first.
"Left" means that nobody who could hold it is at work in the repository.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import at_work
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.call import CHECKOUT_S
from tmuxorch.adapters.git.lockfiles import (
    LockFile,
    drop_unfinished_refs,
    is_there,
    list_locks,
    locks_in,
    look_at,
)
from tmuxorch.adapters.system.locks import Cut
from tmuxorch.core.observation import Dead
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import Agent, EventKind, ProcessId

if TYPE_CHECKING:
    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.service.context import Context

# git holds the lock of a ref for moments, and itself waits no longer than a second for one.
OLD_S = 2.0
PATIENCE_S = 3.0
# Where open files cannot be seen: nobody who is slow is that slow.
OLD_UNSEEN_S = 3600.0
STEP_S = 0.02
# Clocks of files tick in steps.
TICK_S = 0.02


def mend(ctx: Context, repo: Repo, agents: Sequence[Agent], cut: Cut | None) -> bool:
    """Clear what is ours and was left; False if something is there that may be in use.

    The repository's lock is held, and `cut` says that its last holder died at it.
    """
    locks = list(_named_ours(repo, agents))
    if cut is not None:
        _end_gits_of(cut)
        locks += [lock for lock in list_locks(repo) if was_made_by(lock, cut) and lock not in locks]
    left = _clear_once_old(locks, places_of(repo, agents)) if locks else []
    for lock in locks:
        if lock not in left and not is_there(lock):
            why = "a git of ours was killed and left it"
            ctx.store.note(EventKind.LOCK_CLEARED.of(lock.path), why)
    if dropped := drop_unfinished_refs(repo):
        ctx.store.note(EventKind.LOCK_CLEARED.of(dropped), "a git that was killed left it")
    return not left


def _named_ours(repo: Repo, agents: Sequence[Agent]) -> list[LockFile]:
    """Locks of refs that only we and our workers write."""
    refs = f"{repo.common_dir}/refs"
    found = {lock.path: lock for lock in locks_in(f"{refs}/heads/tmuxorch", below=True)}
    for agent in agents:
        for lock in (
            *(look_at(f"{refs}/heads/{agent.task.branch}.lock") if agent.task.branch_made else ()),
            *locks_in(f"{refs}/tmuxorch/salvage/{agent.task.id}", below=True),
        ):
            found[lock.path] = lock
    return list(found.values())


def is_named_ours(repo: Repo, lock: LockFile) -> bool:
    ref = os.path.relpath(lock.path, repo.common_dir)
    return ref.startswith(("refs/heads/tmuxorch/", "refs/tmuxorch/"))


def was_made_by(lock: LockFile, cut: Cut) -> bool:
    """Whether it was made while the command that died held the repository, or may have."""
    since = lock.made_at - cut.since
    return lock.uid == os.geteuid() and -TICK_S <= since <= CHECKOUT_S


def places_of(repo: Repo, agents: Sequence[Agent]) -> list[str]:
    """Where a git stands that works on the repository."""
    listed = (admin.path for admin in git.list_admins(repo))
    known = {repo.root, repo.common_dir, *(path for path in listed if path)}
    return [*known, *(agent.task.worktree for agent in agents)]


def _end_gits_of(cut: Cut) -> None:
    """End what the command that died had started; killing a command leaves its git running."""
    from tmuxorch.adapters.system import procfs

    with suppress(ValueError, TmuxorchError):
        who = ProcessId.parse(cut.who)
        if isinstance(procfs.observe_process(who), Dead):
            at_work.end_orphans(who)


def _clear_once_old(locks: Sequence[LockFile], places: Sequence[str]) -> list[LockFile]:
    """Wait until each has gone or is old and nobody's, and delete those; what is left.

    That it was watched for as long counts as age too, whatever the clocks say.
    """
    old_s = OLD_S if at_work.can_see_files() else OLD_UNSEEN_S
    begun, left = time.monotonic(), list(locks)
    while True:
        left = [lock for lock in left if is_there(lock)]
        watched_s = time.monotonic() - begun
        old = [lock for lock in left if max(watched_s, time.time() - lock.made_at) >= old_s]
        if old and not at_work.observe_at_work(places):
            for lock in old:
                with suppress(OSError):
                    if is_there(lock):
                        os.unlink(lock.path)
            left = [lock for lock in left if lock not in old or is_there(lock)]
        if not left or watched_s > PATIENCE_S:
            return left
        time.sleep(STEP_S if not old else STEP_S * 10)
