"""Files that git does not carry into a new worktree: copied there from the main one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from tmuxorch.errors import SetupFailed


def copy_into_worktree(repo_root: str, worktree: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """Copy what the globs name (`.env`, `config/*.local`, whole directories) with its mode.

    Returns the relative paths copied. What exists in the worktree stays as it is; `.git`,
    nested repositories and other worktrees are passed over. A pattern or link that leads out
    of the repository raises SetupFailed.
    """
    import shutil  # here: 4 ms that most agents do not need

    root, target = os.path.realpath(repo_root), os.path.realpath(worktree)
    copied = []
    for name in sorted({name for pattern in patterns for name in _matches(root, pattern)}):
        source, copy = os.path.join(root, name), os.path.join(target, name)
        if not _is_inside(source, root) or not _is_inside(os.path.dirname(copy), target):
            raise SetupFailed(f"{name} was not copied: it leads out of {repo_root}")
        if os.path.lexists(copy) or _is_inside(source, target):
            continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy2(source, copy, follow_symlinks=False)
        copied.append(name)
    return tuple(copied)


def as_patterns(paths: Sequence[str]) -> list[str]:
    """Patterns that mean exactly these paths."""
    import glob  # as above

    return [glob.escape(path) for path in paths]


def _matches(root: str, pattern: str) -> Iterator[str]:
    parts = pattern.split("/")
    if os.path.isabs(pattern) or ".." in parts or not pattern.strip("/."):
        raise SetupFailed(f"cannot copy {pattern!r}: give a path or glob inside the repository")
    import glob  # as above

    for match in glob.iglob(pattern, root_dir=root, recursive=True, include_hidden=True):
        name = os.path.normpath(match)
        if not _is_in_another_repo(root, name):
            yield from _files(root, name)


def _files(root: str, name: str) -> Iterator[str]:
    path = os.path.join(root, name)
    if os.path.islink(path) or os.path.isfile(path):
        yield name
    elif os.path.isdir(path) and not os.path.lexists(os.path.join(path, ".git")):
        for entry in os.listdir(path):
            yield from _files(root, os.path.join(name, entry))


def _is_in_another_repo(root: str, name: str) -> bool:
    """Whether a directory on the way to `name` has a `.git`, or is one."""
    parts = name.split("/")
    above = ("/".join(parts[:end]) for end in range(1, len(parts)))
    return ".git" in parts or any(os.path.lexists(f"{root}/{part}/.git") for part in above)


def _is_inside(path: str, top: str) -> bool:
    return os.path.realpath(path).startswith(top + os.sep) or os.path.realpath(path) == top
