"""Linked worktrees that an agent has made inside its own.

Their files go with it, but their HEAD, index and logs lie in the repository, where the next
`git worktree prune` would take them for those of a worktree that was deleted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tmuxorch.adapters.git.admin import GONE, Admin, canonical, drop, list_admins, write_whole
from tmuxorch.adapters.git.checkout import head_of, is_usable
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.store.saves import Tree, copy_tree
from tmuxorch.errors import CannotRestore

# What is cut off half-way goes when the repository is next mended.
COMING = f"{GONE}coming-"
_TRIES = 1000


@dataclass(frozen=True, slots=True)
class Inner:
    """One of them: where it is below the outer one, and git's directory for it.

    `head` and `branch` are as `head_of` gives them, both None if git cannot use it.
    """

    path: str
    own: str
    usable: bool
    head: str | None = None
    branch: str | None = None

    @property
    def name(self) -> str:
        return os.path.basename(self.own)


def observe_inner(repo: Repo, worktree: str) -> tuple[Inner, ...]:
    """Those whose place is below `worktree`, be their directories there or not."""
    found = []
    for path, admin in _below(repo, worktree):
        usable = is_usable(admin.directory)
        head, branch = head_of(admin.directory) if usable else (None, None)
        found.append(Inner(path, admin.directory, usable, head, branch))
    return tuple(found)


def forget_inner(repo: Repo, worktree: str) -> None:
    """Make git forget those below `worktree` whose directories are not there any more."""
    for path, admin in _below(repo, worktree):
        if not os.path.lexists(f"{worktree}/{path}"):
            drop(admin.directory)


def _below(repo: Repo, worktree: str) -> list[tuple[str, Admin]]:
    top = f"{canonical(worktree)}/"
    return [
        (admin.path.removeprefix(top), admin)
        for admin in list_admins(repo)
        if admin.path and admin.path.startswith(top)
    ]


def put_back_inner(repo: Repo, saved: str, worktree: str, path: str, name: str) -> str:
    """Have git know the worktree at `path` below `worktree` again; its directory for it.

    `saved` is what that directory was, `name` what it was called; it becomes another one if
    that is taken. The `.git` of the worktree is made to lead there.
    """
    coming = os.path.join(repo.common_dir, f"{COMING}{os.getpid()}")
    home = os.path.join(repo.common_dir, "worktrees")
    copy_tree(saved, coming, skip=("gitdir", "commondir"))
    place = f"{canonical(worktree)}/{path}/.git"
    write_whole(f"{coming}/gitdir", f"{place}\n")
    write_whole(f"{coming}/commondir", "../..\n")
    os.makedirs(home, exist_ok=True)
    for number in range(_TRIES):
        own = os.path.join(home, f"{name}{number or ''}")
        if not os.path.lexists(own):
            os.rename(coming, own)
            _lead(worktree, path, own)
            return own
    raise CannotRestore(f"git has too many worktrees called {name}")


def _lead(worktree: str, path: str, own: str) -> None:
    """Without following a link: nothing is written anywhere else."""
    flags = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with Tree(worktree) as tree, open(os.open(".git", flags, dir_fd=tree.open(path)), "wb") as file:
        file.write(os.fsencode(f"gitdir: {own}\n"))
