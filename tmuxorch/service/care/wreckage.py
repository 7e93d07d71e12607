"""What a killed git or a power cut left half made in a repository: whose it is, and mending it.

Mending is done by whoever holds the repository's lock, before anything else: no command of
ours is in the middle of making what is found half made then. What is not provably ours is
never changed, only told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import admin as admins
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.admin import (
    REFTABLE_HEAD,
    Admin,
    canonical,
    list_admins,
    read_start,
)
from tmuxorch.adapters.git.worktrees import HALF_MADE
from tmuxorch.core.literal import pasteable
from tmuxorch.errors import TmuxorchError, sure
from tmuxorch.model import Agent, EventKind, State
from tmuxorch.service import places

if TYPE_CHECKING:
    from tmuxorch.adapters.git.location import Repo
    from tmuxorch.service.context import Context

# git writes `locked` just before `gitdir`; one that a person makes without a reason is younger.
SAME_MOMENT_S = 2.0
OURS = "tmuxorch:"


class Remedy(Enum):
    FINISH = auto()  # it has files, or a record that needs it
    DROP = auto()  # it leads to nothing
    TELL = auto()  # not ours


@dataclass(frozen=True, slots=True)
class Wreck:
    """A directory of `.git/worktrees` that is not whole, with the worker it was made for."""

    admin: Admin
    remedy: Remedy
    agent: Agent | None = None
    reason: str = ""

    @property
    def words(self) -> str:
        what = ", ".join(self.admin.flaws) or "the reason of its lock, or its link"
        return f"git was killed while it made or removed a worktree: it lacks {what}"

    @property
    def command(self) -> str:
        return pasteable(["rm", "-r", self.admin.directory])


def observe(ctx: Context, repo: Repo, agents: Sequence[Agent]) -> list[Wreck]:
    """All that are not whole; `agents` are the recorded ones of this repository."""
    listed = list_admins(repo)
    leads_to = {admin.path for admin in listed if admin.path}
    homeless = [agent for agent in agents if canonical(agent.task.worktree) not in leads_to]
    found = []
    for admin in listed:
        agent = _agent_of(ctx, admin, agents, homeless)
        lost = agent is not None and (_lost_its_mark(admin) or _is_empty_link(agent.task.worktree))
        if admin.flaws or lost:
            found.append(_judged(ctx, admin, agent))
    return found


def _agent_of(
    ctx: Context, admin: Admin, agents: Sequence[Agent], homeless: Sequence[Agent]
) -> Agent | None:
    """The worker it was made for, by its mark, its path, or the name that git gave it."""
    if admin.locked and admin.locked != HALF_MADE:
        return next((a for a in agents if ctx.lock_reason(a) == admin.locked), None)
    if admin.path:
        return next((a for a in agents if canonical(a.task.worktree) == admin.path), None)
    # git adds a number where the name is taken.
    return next(
        (
            agent
            for agent in homeless
            if re.fullmatch(re.escape(os.path.basename(agent.task.worktree)) + r"\d*", admin.name)
        ),
        None,
    )


def _lost_its_mark(admin: Admin) -> bool:
    """Whether its lock is empty since it was made, and not by a person's `git worktree lock`."""
    if admin.locked != "":
        return False
    try:
        made, marked = (
            os.lstat(os.path.join(admin.directory, name)).st_mtime for name in ("gitdir", "locked")
        )
    except OSError:
        return False
    return marked <= made + SAME_MOMENT_S


def _is_empty_link(worktree: str) -> bool:
    """Whether the `.git` that leads from the worktree to git's directory is there and empty."""
    return read_start(os.path.join(worktree, ".git")) == ""


def _judged(ctx: Context, admin: Admin, agent: Agent | None) -> Wreck:
    if agent is not None:
        under_way = agent.state in (State.CREATING, State.REMOVING)
        is_nowhere = not _holds_anything(agent.task.worktree) and not places.is_set_aside(
            ctx, agent
        )
        remedy = Remedy.DROP if under_way and is_nowhere else Remedy.FINISH
        return Wreck(admin, remedy, agent, ctx.lock_reason(agent))
    own = f"{OURS}{ctx.store.id}:"
    marked = (admin.locked or "").startswith(own)
    if not marked and (admin.locked not in (None, "", HALF_MADE) or not admin.path):
        return Wreck(admin, Remedy.TELL)
    if not admin.path or not _holds_anything(admin.path):
        is_ours = marked or _is_in_our_root(ctx, admin.path or "")
        return Wreck(admin, Remedy.DROP if is_ours else Remedy.TELL)
    return Wreck(admin, Remedy.FINISH if marked else Remedy.TELL, reason=admin.locked or "")


def _holds_anything(path: str) -> bool:
    """Whether there is more than the link to git's directory."""
    try:
        return any(name != ".git" or os.path.isdir(f"{path}/.git") for name in os.listdir(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True  # what cannot be looked at may hold work


def _is_in_our_root(ctx: Context, path: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(ctx.worktrees_dir) + os.sep)


def mend(ctx: Context, repo: Repo, agents: Sequence[Agent]) -> None:
    """Finish or drop what is half made and ours; the repository's lock is held."""
    admins.drop_remains(repo)
    for agent in agents:
        with suppress(OSError):
            _mend_branch(ctx, repo, agent)
    for wreck in observe(ctx, repo, agents):
        if wreck.remedy is Remedy.TELL:
            continue
        try:
            _mend_one(repo, wreck)
        except (TmuxorchError, OSError) as failure:
            ctx.narrate(f"{wreck.admin.directory} could not be mended: {failure}")
            continue
        did = EventKind.DROPPED if wreck.remedy is Remedy.DROP else EventKind.FINISHED
        if wreck.agent is not None:
            ctx.store.record(wreck.agent, did.of(wreck.admin.directory), wreck.words)
        else:
            ctx.store.note(did.of(wreck.admin.directory), wreck.words)


def _mend_one(repo: Repo, wreck: Wreck) -> None:
    admin = wreck.admin
    path = wreck.agent.task.worktree if wreck.agent is not None else admin.path
    if wreck.remedy is Remedy.DROP:
        admins.drop(admin.directory)
        if path and not _holds_anything(path):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(path, ".git"))
            with suppress(FileNotFoundError):
                os.rmdir(path)
        return
    path = sure(path, "what names no directory is dropped")
    head = admin.head or _head(repo, admin, wreck.agent)
    admins.finish(repo, admin, canonical(path), head=head, reason=wreck.reason)
    dot_git = os.path.join(path, ".git")
    if os.path.isdir(path) and (_is_empty_link(path) or not os.path.lexists(dot_git)):
        admins.write_whole(dot_git, f"gitdir: {admin.directory}\n")


def _head(repo: Repo, admin: Admin, agent: Agent | None) -> str:
    """Its worker's branch, unless its log says that it was elsewhere; then that commit."""
    if read_start(os.path.join(repo.common_dir, "HEAD")) == REFTABLE_HEAD:
        return REFTABLE_HEAD
    last = next((oid for oid in _logged(admin.directory, "HEAD") if _commit(repo, oid)), None)
    if agent is None:
        return last or _commit(repo, "HEAD") or "0" * 40
    on_branch = last is None or last == git.branch_commit(repo, agent.task.branch)
    return f"ref: refs/heads/{agent.task.branch}" if on_branch or last is None else last


def _mend_branch(ctx: Context, repo: Repo, agent: Agent) -> None:
    """A branch's file that a power cut emptied gets back what its log says, or its base."""
    ref = f"refs/heads/{agent.task.branch}"
    path = os.path.join(repo.common_dir, ref)
    if not agent.task.branch_made or read_start(path) != "":
        return
    known = (*_logged(repo.common_dir, ref), agent.task.base_commit)
    commit = next((oid for oid in known if _commit(repo, oid)), None)
    if commit is not None:
        admins.write_whole(path, f"{commit}\n")
        what = EventKind.BRANCH_MENDED.of(f"{agent.task.branch} back its commit")
        ctx.store.record(agent, what, f"{path} was empty")


def _logged(own: str, ref: str) -> Iterator[str]:
    """Where a ref was according to its log, the last place first."""
    try:
        with open(os.path.join(own, "logs", ref), "rb") as log:
            lines = log.read().splitlines()
    except OSError:
        return
    for line in reversed(lines):
        words = line.split(b" ", 2)
        if len(words) == 3 and words[1].isalnum() and words[1].strip(b"0"):
            yield words[1].decode()


def _commit(repo: Repo, name: str) -> str | None:
    asked = ("rev-parse", "-q", "--verify", f"{name}^{{commit}}")
    done = git.git(repo.root, *asked, ok=range(256))
    return done.stdout.decode().strip() if done.returncode == 0 else None
