"""What would be lost with a worktree: observed without touching it, and put into words."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from tmuxorch.adapters import git
from tmuxorch.adapters.git import Commit, Repo, Status
from tmuxorch.adapters.git.index import (
    IndexEntry,
    observe_hidden_changes,
    observe_special_entries,
)
from tmuxorch.adapters.git.status import IGNORED, SUBMODULE, UNTRACKED

SHOWN = 5
# What git leaves in a worktree's own directory while it waits for the person.
OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "sequencer": "cherry-pick or revert",
    "BISECT_LOG": "bisect",
}


@dataclass(frozen=True, slots=True)
class Nested:
    """A repository inside the worktree with commits or changes that nobody else has."""

    path: str
    commits: int
    changes: int


@dataclass(frozen=True, slots=True)
class Stake:
    """What removing a worktree would lose.

    Paths are relative to the worktree; a directory that is ignored as a whole ends in `/`.
    `hidden` are changes that git was told not to look at, `commits` those since the base that
    only this branch or a detached HEAD holds, newest first, `processes` those of others that
    work in the directory.
    """

    branch: str
    staged: tuple[str, ...] = ()
    unstaged: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    operation: str | None = None
    nested: tuple[Nested, ...] = ()
    stashes: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return self == Stake(self.branch)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def observe_stake(
    repo: Repo,
    worktree: str,
    *,
    branch: str,
    branch_made: bool,
    base_commit: str,
    copied: Collection[str],
) -> Stake:
    """Look at everything that goes with the worktree, and at its branch if that is ours.

    `copied` are files from the main worktree, which count once they differ from it. With the
    directory missing, commits are still at stake. Raises GitFailed where git cannot tell.
    """
    stashes = tuple(_stashes(repo, branch))
    ours = branch if branch_made else None
    if not os.path.isdir(worktree):
        listed = [found for found in git.list_worktrees(repo) if found.path == worktree]
        head, on = (listed[0].head, listed[0].branch) if listed else (None, None)
        return Stake(branch, commits=_commits(repo, head, on, ours, base_commit), stashes=stashes)
    status = git.observe_status(worktree, ignored=True)
    special = observe_special_entries(worktree)
    # Edits inside a submodule are its own; out here its commit is what can change.
    files = [e for e in status.entries if e.submodule[0] == "N" or "C" in e.submodule]
    links = [e for e in status.entries if e.submodule[0] == "S" and "C" not in e.submodule]
    new = [e.path for e in files if e.xy == UNTRACKED and not e.path.endswith("/")]
    ignored = [e.path for e in files if e.xy == IGNORED]
    inside = [
        found
        for path in _nested_repos(worktree, status, special)
        for found in _look_inside(worktree, path)
    ]
    same = {path for path in copied if _is_same(f"{repo.root}/{path}", f"{worktree}/{path}")}
    return Stake(
        branch=branch,
        staged=tuple(e.path for e in (*files, *links) if e.xy[0] not in ".?!" and not e.unmerged),
        unstaged=tuple(e.path for e in files if e.xy[1] not in ".?!" or e.unmerged),
        untracked=tuple(path for path in new if path not in same),
        ignored=(
            *_without(worktree, ignored, same),
            *(path for _, paths in inside for path in paths),
        ),
        hidden=observe_hidden_changes(worktree, special),
        commits=_commits(repo, status.head, status.branch, ours, base_commit),
        operation=_operation(worktree),
        nested=tuple(found for found, _ in inside if found.commits or found.changes),
        stashes=stashes,
    )


def _nested_repos(worktree: str, status: Status, special: Iterable[IndexEntry]) -> Iterator[str]:
    """The repositories inside a worktree: submodules that are there, and untracked ones."""
    for entry in special:
        if entry.mode == SUBMODULE and os.path.lexists(f"{worktree}/{entry.path}/.git"):
            yield entry.path
    for found in status.entries:
        if found.xy == UNTRACKED and found.path.endswith("/"):
            yield found.path.rstrip("/")


def _look_inside(worktree: str, path: str) -> Iterator[tuple[Nested, list[str]]]:
    """A nested repository and those inside it: what each has of its own, and what it ignores."""
    top = f"{worktree}/{path}"
    status = git.observe_status(top, ignored=True)
    special = observe_special_entries(top)
    changes = sum(entry.xy != IGNORED for entry in status.entries)
    changes += len(observe_hidden_changes(top, special))
    ignored = [f"{path}/{entry.path}" for entry in status.entries if entry.xy == IGNORED]
    yield Nested(path, _own_commits(worktree, top, status.head), changes), ignored
    for inner in _nested_repos(top, status, special):
        yield from _look_inside(worktree, f"{path}/{inner}")


def _own_commits(worktree: str, top: str, head: str | None) -> int:
    """How many commits go with a nested repository: all but those that its remotes have."""
    if not outlives(worktree, top):
        tips = ["--all", "--not", "--remotes"]
    elif head is not None:
        tips = [head, "--not", "--glob=refs/*"]
    else:
        return 0
    return int(git.git(top, "rev-list", "--count", *tips).stdout)


def outlives(worktree: str, top: str) -> bool:
    """Whether the nested repository `top` keeps its commits elsewhere than in the worktree."""
    home = git.find_repo(top).common_dir
    return not home.startswith((os.path.realpath(worktree) + "/", git.git_dir(worktree) + "/"))


def _commits(
    repo: Repo, head: str | None, on: str | None, ours: str | None, base_commit: str
) -> tuple[Commit, ...]:
    """The commits since the base that go if HEAD (`on` a branch, or detached) and `ours` go."""
    tips = {head}
    if ours and on != ours:
        tips.add(git.branch_commit(repo, ours))
    real = [tip for tip in tips if tip and tip.strip("0") and tip != base_commit]
    if not real:
        return ()
    return git.commits_only_on(repo, [*real, f"^{base_commit}"], besides=ours)


def _operation(worktree: str) -> str | None:
    own = git.git_dir(worktree)
    found = (word for name, word in OPERATIONS.items() if os.path.exists(f"{own}/{name}"))
    return next(found, None)


def _stashes(repo: Repo, branch: str) -> Iterator[str]:
    """The titles of the stashes made on `branch`, off the log that is git's list of them."""
    try:
        with open(f"{repo.common_dir}/logs/refs/stash", encoding="utf-8", errors="replace") as log:
            titles = [line.rstrip("\n").partition("\t")[2] for line in log]
    except FileNotFoundError:
        return
    yield from (
        t for t in reversed(titles) if t.startswith((f"WIP on {branch}: ", f"On {branch}: "))
    )


def _without(worktree: str, ignored: Iterable[str], same: Collection[str]) -> Iterator[str]:
    """`ignored` less the files in `same`; a directory with some of them is listed by file."""
    for path in ignored:
        if path.endswith("/") and any(copy.startswith(path) for copy in same):
            yield from (name for name in _files(worktree, path.rstrip("/")) if name not in same)
        elif path not in same:
            yield path


def _files(worktree: str, path: str) -> Iterator[str]:
    for entry in sorted(os.scandir(f"{worktree}/{path}"), key=lambda entry: entry.name):
        name = f"{path}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(worktree, name)
        else:
            yield name


def _is_same(one: str, other: str) -> bool:
    """Whether both are the same link, or files of the same bytes and mode."""
    try:
        if os.path.islink(one) or os.path.islink(other):
            return os.readlink(one) == os.readlink(other)
        first, second = os.stat(one), os.stat(other)
        if (first.st_mode, first.st_size) != (second.st_mode, second.st_size):
            return False
        with open(one, "rb") as left, open(other, "rb") as right:
            while (chunk := left.read(1 << 20)) == right.read(1 << 20):
                if not chunk:
                    return True
    except OSError:
        pass
    return False


def describe(stake: Stake) -> list[str]:
    """The stake in lines for a person, none if it is empty."""
    changed = list(dict.fromkeys((*stake.staged, *stake.unstaged)))
    titles = [commit.title for commit in stake.commits]
    lines = [
        _line(changed, "file", "changed but not committed"),
        _line(stake.untracked, "new file", "not in git"),
        _line(stake.hidden, "file", "changed although hidden from git status"),
        _line(stake.ignored, "ignored file or directory", ""),
        _line(titles, "commit", f"only on {stake.branch}", separator="; "),
        *(_nested_line(nested) for nested in stake.nested),
        _line(stake.stashes, "stash", f"made on {stake.branch}", separator="; "),
    ]
    if stake.operation:
        lines.append(f"a {stake.operation} that is not finished")
    lines.append(_line(stake.processes, "other process", "at work in it"))
    return [line for line in lines if line]


def _line(items: Sequence[str], noun: str, what: str, *, separator: str = ", ") -> str:
    if not items:
        return ""
    shown = [_printable(item) for item in items[:SHOWN]]
    if len(items) > SHOWN:
        shown.append(f"and {len(items) - SHOWN} more")
    words = " ".join(word for word in (_count(len(items), noun), what) if word)
    return f"{words}: {separator.join(shown)}"


def _nested_line(nested: Nested) -> str:
    counts = [(nested.commits, "commit"), (nested.changes, "changed file")]
    words = " and ".join(_count(number, noun) for number, noun in counts if number)
    return f"{words} in the repository {_printable(nested.path)} inside it"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    plural = {
        "stash": "stashes",
        "other process": "other processes",
        "ignored file or directory": "ignored files or directories",
    }
    return f"{number} {plural.get(noun, noun + 's')}"


def _printable(text: str) -> str:
    """With escapes for what would steer a terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
