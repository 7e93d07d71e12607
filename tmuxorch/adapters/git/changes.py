"""What an agent has done since its base: commits, edits and new files as one change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.checkout import Checkout, head_of
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.git.status import UNTRACKED, observe_status
from tmuxorch.adapters.git.survey import TEMPORARY
from tmuxorch.adapters.git.worktrees import find_admin_dir
from tmuxorch.errors import GitFailed

# By the length of the repository's object names: SHA-1, SHA-256.
EMPTY_BLOB = {
    40: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    64: "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}
# Nothing that a configuration names is run, and no submodule is looked into.
DIFF = (
    *("-c", "diff.submodule=short"),
    *("diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"),
)
NUMBERS = ("--numstat", "--find-renames")


@dataclass(frozen=True, slots=True)
class WorkStats:
    """Commits since the base, and the lines by which the files now differ from it."""

    head_commit: str | None
    commits: int
    files_changed: int
    insertions: int
    deletions: int


def find_checkout(
    repo: Repo, worktree: str, *, admin: str | None = None, top: str | None = None
) -> Checkout:
    """The worktree by the git directory that the repository keeps for it.

    `admin` is where that was when the worktree was made, `top` where the files are, if moved.
    """
    own = find_admin_dir(repo, worktree, recorded=admin)
    if own is None:
        if os.path.realpath(worktree) != os.path.realpath(repo.root) or repo.bare:
            raise GitFailed(f"git knows no worktree at {worktree}")
        own = repo.common_dir
    return Checkout(top or worktree, own)


def work_stats(
    repo: Repo,
    worktree: str,
    base_commit: str,
    *,
    admin: str | None = None,
    top: str | None = None,
) -> WorkStats:
    """Count what is there since `base_commit`, untracked files included.

    Of a worktree whose directory has gone, the commits are what is left to count.
    """
    checkout = find_checkout(repo, worktree, admin=admin, top=top)
    if not os.path.isdir(checkout.top):
        head, _ = head_of(checkout.own)
        if head is None:
            return WorkStats(None, 0, 0, 0, 0)
        numbers = git(repo.root, *DIFF, *NUMBERS, base_commit, head, "--").stdout
        return _stats(repo.root, base_commit, head, numbers)
    status = observe_status(checkout)
    if status.head == base_commit and not status.entries:
        return WorkStats(status.head, 0, 0, 0, 0)
    new = [entry.path for entry in status.entries if entry.xy == UNTRACKED]
    return _stats(repo.root, base_commit, status.head, _diff(checkout, base_commit, new, *NUMBERS))


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


def diff(
    repo: Repo,
    worktree: str,
    base: str,
    base_commit: str,
    *,
    stat: bool,
    color: bool,
    admin: str | None = None,
) -> bytes:
    """All of it in one diff against the base: committed, staged, unstaged and untracked."""
    checkout = find_checkout(repo, worktree, admin=admin)
    new = [entry.path for entry in observe_status(checkout).entries if entry.xy == UNTRACKED]
    options = ["--color=always" if color else "--no-color", *(["--stat"] if stat else [])]
    return _diff(checkout, newest_base(checkout, base, base_commit), new, *options)


def newest_base(checkout: Checkout, base: str, base_commit: str) -> str:
    """`base_commit`, or what HEAD shares with the branch `base` if it took in newer commits."""
    for ref in (f"refs/heads/{base}", f"refs/remotes/{base}"):
        shared = checkout.ask("merge-base", "HEAD", ref, ok=(0, 1, 128)).stdout.decode().strip()
        if shared:
            asked = ("merge-base", "--is-ancestor", base_commit, shared)
            newer = checkout.ask(*asked, ok=(0, 1, 128)).returncode == 0
            return shared if newer else base_commit
    return base_commit


def _diff(checkout: Checkout, commit: str, new: Sequence[str], *options: str) -> bytes:
    """Diff `commit` with the files; `new` are untracked ones to count in."""
    with temporary_index(checkout.own) as env:
        # An empty file in the index with no stat data: git reads the real one to compare.
        blob = EMPTY_BLOB[len(commit)]
        lines = [f"100644 {blob} 0\t{path}\0" for path in new if not path.endswith("/")]
        if lines:
            stdin = os.fsencode("".join(lines))
            checkout.ask("update-index", "-z", "--index-info", stdin=stdin, env=env)
        return checkout.ask(*DIFF, *options, commit, "--", env=env).stdout


@contextmanager
def temporary_index(own: str) -> Iterator[dict[str, str]]:
    """An environment that makes git work on a copy of the index in the git directory `own`.

    The copy lies there too, so what a crash leaves goes with the worktree.
    """
    import shutil  # here: 10 ms for the two that `new` does not need
    import tempfile

    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=own) as directory:
        index = os.path.join(directory, "index")
        if os.path.exists(os.path.join(own, "index")):
            # With its time: git trusts the stat data of files older than their index.
            shutil.copy2(os.path.join(own, "index"), index)
        yield {"GIT_INDEX_FILE": index}
