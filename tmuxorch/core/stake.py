"""What would be lost with a worktree, put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from tmuxorch.core.literal import literal
from tmuxorch.core.observation import Unknown

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Commit:
    oid: str
    title: str


@dataclass(frozen=True, slots=True)
class Nested:
    """A repository inside the worktree: it goes with it, and so does what only it has."""

    path: str
    commits: int
    changes: int


@dataclass(frozen=True, slots=True)
class Stake:
    """What removing a worktree would lose.

    Paths are relative to the worktree; a directory that is ignored as a whole ends in `/`.
    `hidden` are changes that git does not see or was told not to look at, `commits` those since
    the base that only this branch or a detached HEAD holds, `dropped` those that only a log
    still knows, newest first; `processes` are those of others that work in the directory, `odd`
    what makes it another directory than tmuxorch made. `special` files hold nothing that could
    be lost; they are named because no save brings them back.
    """

    branch: str
    staged: tuple[str, ...] = ()
    unstaged: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    commits: tuple[Commit, ...] = ()
    dropped: tuple[Commit, ...] = ()
    operation: str | None = None
    nested: tuple[Nested, ...] = ()
    stashes: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    special: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return replace(self, special=()) == Stake(self.branch)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


# Whether a stake is empty or not, somebody has looked; Unknown is no evidence for either.
StakeFact = Stake | Unknown


def describe(stake: Stake) -> list[str]:
    """The stake in lines for a person, none if it is empty."""
    changed = list(dict.fromkeys((*stake.staged, *stake.unstaged)))
    titles = [commit.title for commit in stake.commits]
    dropped = [commit.title for commit in stake.dropped]
    lines = [
        _line(changed, "file", "changed but not committed"),
        _line(stake.untracked, "new file", "not in git"),
        _line(stake.hidden, "file", "changed although hidden from git status"),
        _line(stake.ignored, "ignored file or directory", ""),
        _line(titles, "commit", f"only on {stake.branch}", separator="; "),
        _line(dropped, "commit", "that only a log of git still knows", separator="; "),
        *(_nested_line(nested) for nested in stake.nested),
        _line(stake.stashes, "stash", f"made on {stake.branch}", separator="; "),
    ]
    if stake.operation:
        lines.append(f"a {stake.operation} that is not finished")
    lines.append(_line(stake.processes, "other process", "at work in it"))
    lines += stake.odd
    lines.append(_line(stake.special, "FIFO, socket or device", "that no save brings back"))
    return [line for line in lines if line]


def _line(items: Sequence[str], noun: str, what: str, *, separator: str = ", ") -> str:
    if not items:
        return ""
    shown = [literal(item) for item in items[:SHOWN]]
    if len(items) > SHOWN:
        shown.append(f"and {len(items) - SHOWN} more")
    words = " ".join(word for word in (_count(len(items), noun), what) if word)
    return f"{words}: {separator.join(shown)}"


def _nested_line(nested: Nested) -> str:
    counts = [(nested.commits, "commit"), (nested.changes, "changed file")]
    words = " and ".join(_count(number, noun) for number, noun in counts if number)
    if not words:
        return f"the repository {literal(nested.path)} inside it"
    return f"{words} in the repository {literal(nested.path)} inside it"


def _count(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    plural = {
        "stash": "stashes",
        "other process": "other processes",
        "ignored file or directory": "ignored files or directories",
        "FIFO, socket or device": "FIFOs, sockets or devices",
    }
    return f"{number} {plural.get(noun, noun + 's')}"
