"""Which repository a directory belongs to, and what new work in it starts from.

`tmuxorch ls` imports this module: nothing here that it does not need.
"""

from __future__ import annotations

from tmuxorch.adapters.git.location import Repo, check_text, find_repo, locate

__all__ = ["Repo", "find_bases", "find_default_base", "find_repository", "find_root"]


def find_repository(path: str) -> Repo:
    """The repository that `path` is in, or `NoRepository`; `BadText` if no record can name it."""
    repo = find_repo(path)
    check_text(repo.root)
    return repo


def find_root(path: str) -> str | None:
    """The root of the repository that `path` is in, None if there is none."""
    found = locate(path)
    return check_text(found.root) if found else None


def find_default_base(path: str) -> str:
    """The name of what a new worker's branch starts from unless another base is asked for."""
    from tmuxorch.adapters.git.branches import resolve_base

    return resolve_base(find_repo(path), None, cwd=path).name


def find_bases(path: str, *, timeout_s: float = 10.0) -> tuple[str, ...]:
    """The branches and tags that a new worker can start from, by name, newest first."""
    from tmuxorch.adapters.git.branches import list_bases

    return list_bases(find_repo(path), timeout_s=timeout_s)
