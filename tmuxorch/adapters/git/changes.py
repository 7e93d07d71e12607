"""What an agent has done since its base: commits, edits and new files as one change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.filters import ask_despite_filters
from tmuxorch.adapters.git.index import EMPTY_BLOB, PLAIN_INDEX, temporary_index
from tmuxorch.adapters.git.status import UNTRACKED, observe_status
from tmuxorch.adapters.git.worktrees import list_worktrees
from tmuxorch.adapters.gitdir import Repo, git_dir


@dataclass(frozen=True, slots=True)
class WorkStats:
    """Commits since the base, and the lines by which the files now differ from it."""

    head_commit: str | None
    commits: int
    files_changed: int
    insertions: int
    deletions: int


def work_stats(repo: Repo, worktree: str, base_commit: str) -> WorkStats:
    """Count what is there since `base_commit`, untracked files included.

    Of a worktree whose directory has gone, the commits are what is left to count.
    """
    if not os.path.isdir(worktree):
        return _committed_stats(repo, worktree, base_commit)
    status = observe_status(worktree)
    if status.head == base_commit and not status.entries:
        return WorkStats(status.head, 0, 0, 0, 0)
    new = [entry.path for entry in status.entries if entry.xy == UNTRACKED]
    numbers = _diff(worktree, base_commit, new, "--numstat", "--find-renames")
    return _stats(worktree, base_commit, status.head, numbers)


def _committed_stats(repo: Repo, worktree: str, base_commit: str) -> WorkStats:
    heads = [listed.head for listed in list_worktrees(repo) if listed.path == worktree]
    if not heads or heads[0] is None or not heads[0].strip("0"):
        return WorkStats(None, 0, 0, 0, 0)
    asked = ("diff", "--no-ext-diff", "--numstat", "--find-renames", base_commit, heads[0], "--")
    return _stats(repo.root, base_commit, heads[0], git(repo.root, *asked).stdout)


def _stats(directory: str, base_commit: str, head: str | None, numbers: bytes) -> WorkStats:
    commits = 0
    if head not in (None, base_commit):
        commits = int(git(directory, "rev-list", "--count", f"{base_commit}..{head}").stdout)
    # One line per file, `-` for the lines of a binary one.
    lines = [line.split(b"\t") for line in numbers.splitlines()]
    return WorkStats(
        head_commit=head,
        commits=commits,
        files_changed=len(lines),
        insertions=sum(int(added) for added, *_ in lines if added != b"-"),
        deletions=sum(int(deleted) for _, deleted, *_ in lines if deleted != b"-"),
    )


def diff(worktree: str, base: str, base_commit: str, *, stat: bool, color: bool) -> bytes:
    """All of it in one diff against the base: committed, staged, unstaged and untracked."""
    new = [entry.path for entry in observe_status(worktree).entries if entry.xy == UNTRACKED]
    options = ["--color=always" if color else "--no-color", *(["--stat"] if stat else [])]
    return _diff(worktree, newest_base(worktree, base, base_commit), new, *options)


def newest_base(worktree: str, base: str, base_commit: str) -> str:
    """`base_commit`, or what HEAD shares with the branch `base` if it took in newer commits."""
    for ref in (f"refs/heads/{base}", f"refs/remotes/{base}"):
        shared = git(worktree, "merge-base", "HEAD", ref, ok=(0, 1, 128)).stdout.decode().strip()
        if shared:
            asked = ("merge-base", "--is-ancestor", base_commit, shared)
            newer = git(worktree, *asked, ok=(0, 1, 128)).returncode == 0
            return shared if newer else base_commit
    return base_commit


def _diff(worktree: str, commit: str, new: Sequence[str], *options: str) -> bytes:
    """Diff `commit` with the files; `new` are untracked ones to count in."""
    with temporary_index(git_dir(worktree)) as env:
        # An empty file in the index with no stat data: git reads the real one to compare.
        blob = EMPTY_BLOB[len(commit)]
        lines = [f"100644 {blob} 0\t{path}\0" for path in new if not path.endswith("/")]
        if lines:
            stdin = os.fsencode("".join(lines))
            git(worktree, *PLAIN_INDEX, "update-index", "-z", "--index-info", stdin=stdin, env=env)
        asked = ("diff", "--no-ext-diff", *options, commit, "--")
        return ask_despite_filters(worktree, *PLAIN_INDEX, *asked, env=env).stdout
