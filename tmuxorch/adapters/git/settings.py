"""What a worktree has of its own beside work: settings, and marks in its index."""

from __future__ import annotations

import os

from tmuxorch.adapters.git.index_file import Index
from tmuxorch.adapters.git.location import Repo
from tmuxorch.reading import read_regular

_MAX = 1 << 24
SPARSE = "info/sparse-checkout"


def has_settings(repo: Repo, own: str, index: Index) -> bool:
    """Whether a fresh worktree would lack settings, refs or marks that this one has.

    git gives a new worktree the main one's settings and its choice of files.
    """
    if _differs(repo, own, "config.worktree") or _differs(repo, own, SPARSE):
        return True
    if os.path.isdir(f"{own}/refs/worktree"):
        return True
    sparse = os.path.lexists(f"{own}/{SPARSE}")
    return any(entry.assumed or (entry.skipped and not sparse) for entry in index.entries.values())


def _differs(repo: Repo, own: str, name: str) -> bool:
    path = f"{own}/{name}"
    if not os.path.lexists(path):
        return False
    try:
        said = read_regular(path, limit=_MAX)
        return said != read_regular(f"{repo.common_dir}/{name}", limit=_MAX)
    except OSError:
        return True
