"""What lies around: a thing of ours that nobody owns any more, and what may be done with it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.git.worktrees import Worktree
from tmuxorch.adapters.system import process_table
from tmuxorch.adapters.system.process_row import Row
from tmuxorch.errors import NoRepository
from tmuxorch.model import Agent, AgentId
from tmuxorch.service.context import Context


class Thing(StrEnum):
    WORKTREE = "worktree"
    BRANCH = "branch"
    WINDOW = "window"
    PROCESS = "process"
    FILE = "file"
    HISTORY = "history"


class Disposal(StrEnum):
    """What `sweep --apply` does; what is reported or kept is left to the person."""

    REMOVE = "remove"
    SALVAGE = "salvage"
    REPORT = "report"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Orphan:
    """One find. A worktree and a file have a `path`, a process a `pid`, the others an `id`.

    `command` is what a person may paste where tmuxorch itself does not act; `socket` and
    `agent_id` say where a window is and whose the thing was.
    """

    kind: Thing
    reason: str
    action: Disposal
    path: str | None = None
    id: str | None = None
    pid: int | None = None
    repo: str | None = None
    bytes: int | None = None
    command: str | None = None
    socket: str | None = None
    agent_id: AgentId | None = None
    done: bool = False

    @property
    def name(self) -> str:
        return str(self.path or self.id or self.pid)

    def is_same_as(self, other: Orphan) -> bool:
        mine = (self.kind, self.name, self.repo, self.socket)
        return mine == (other.kind, other.name, other.repo, other.socket)

    def as_json(self) -> dict[str, object]:
        """The object that `sweep` prints; of path, id and pid only the one it has."""
        keys = {"path": self.path, "id": self.id, "pid": self.pid}
        return {
            "kind": self.kind,
            **{key: value for key, value in keys.items() if value is not None},
            "repo": self.repo,
            "reason": self.reason,
            "bytes": self.bytes,
            "action": self.action,
            "done": self.done,
            "command": self.command,
        }


@dataclass
class Look:
    """The facts that all searches share, each gathered once when it is first asked for."""

    ctx: Context
    agents: dict[AgentId, Agent] = field(init=False)

    def __post_init__(self) -> None:
        self.agents = {agent.task.id: agent for agent in self.ctx.store.agents()}

    @cached_property
    def removed(self) -> frozenset[str]:
        """The ids of removed workers."""
        return self.ctx.store.past.ids()

    @cached_property
    def known_roots(self) -> set[str]:
        """The repositories that a worker or the history names."""
        return {agent.task.repo for agent in self.agents.values()} | {*self.ctx.store.past.repos()}

    @cached_property
    def processes(self) -> list[Row]:
        return [row for row in process_table.read_table().values() if not row.ended]

    @cached_property
    def directories(self) -> list[str]:
        """What is in our root, two levels down, where worktrees are; no trash and no saves."""
        return [
            entry.path
            for label in _directories(self.ctx.worktrees_dir)
            for entry in _directories(label.path)
            if entry.name not in (".trash", ".saved")
        ]

    @cached_property
    def trash(self) -> list[os.DirEntry[str]]:
        return [
            entry
            for label in _directories(self.ctx.worktrees_dir)
            for entry in _directories(os.path.join(label.path, ".trash"))
        ]

    @cached_property
    def repos(self) -> dict[str, Repo]:
        """Every repository that an agent, a history entry or a directory in our root names.

        One that is in our root itself was made by an agent: its word on what is ours is none.
        """
        linked = {path for path in self.directories if os.path.isfile(f"{path}/.git")}
        found = {}
        for root in self.known_roots | linked:
            try:
                repo = git.find_repo(root)
            except NoRepository:
                continue
            if root in self.known_roots or not self.is_in_our_root(repo.common_dir):
                found[repo.root] = repo
        return found

    @cached_property
    def worktrees(self) -> list[tuple[Repo, Worktree]]:
        """The linked worktrees of those repositories, whoever made them."""
        return [
            (repo, worktree)
            for repo in self.repos.values()
            for worktree in git.list_worktrees(repo)[1:]
        ]

    def users_of(self, path: str) -> list[Row]:
        """Who works in a directory; never this command itself."""
        real = os.path.realpath(path)
        return [
            row
            for row in self.processes
            if row.pid != os.getpid()
            and row.cwd is not None
            and (row.cwd == real or row.cwd.startswith(real + os.sep))
        ]

    def is_recorded(self, agent_id: str) -> bool:
        """Whether a worker has this id, made meanwhile perhaps: its row is there before it."""
        return agent_id in self.agents or self.ctx.store.agent(agent_id) is not None

    def is_claimed(self, path: str) -> bool:
        """The same for a worktree's directory."""
        real = os.path.realpath(path)
        return any(os.path.realpath(a.task.worktree) == real for a in self.ctx.store.agents())

    def serving(self, agent_id: str) -> list[Row]:
        """Live processes that were started for an agent."""
        return [row for row in self.processes if row.marker == agent_id]

    def is_in_our_root(self, path: str) -> bool:
        root = os.path.realpath(self.ctx.worktrees_dir)
        return os.path.realpath(path).startswith(root + os.sep)


def _directories(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            found = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # it went, or is another user's: not ours to look through
        return []
    return sorted(found, key=lambda entry: entry.name)


def size_of(path: str) -> int:
    """The bytes of a file, or of all files below a directory, as far as they can be seen."""
    total, left = 0, [path]
    while left:
        here = left.pop()
        with suppress(OSError):
            if not os.path.isdir(here) or os.path.islink(here):
                total += os.lstat(here).st_size
                continue
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
    return total


def busy(users: list[Row]) -> str:
    """In words, that a live process works in a thing."""
    first = f"{users[0].pid} ({process_table.read_command(users[0])})"
    more = f" and {len(users) - 1} more" if len(users) > 1 else ""
    return f"process {first}{more} works in it"
