"""What must be there: each agent's work as it was at the last quiet moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.rawtree import GitPart, RawTree, differences, read_tree
from tests.soak.world import World

CHAT = b"chat"


@dataclass(frozen=True)
class Known:
    """One agent's obligations; `tree` is None if nobody has looked at a quiet moment yet.

    `on` is the ref that its HEAD was on then, "" if none. `said` are files that it inherited,
    beyond those that its own journal names; `is_loose` means that a command was asked to commit
    its work, so that only the files must stay.
    """

    id: str
    worktree: Path
    tree: RawTree | None = None
    on: str = ""
    said: frozenset[str] = frozenset()
    is_loose: bool = False


@dataclass
class Ledger:
    """All agents of a world, by id."""

    world: World
    rows: list[dict[str, Any]] = field(default_factory=list)
    live: dict[str, Known] = field(default_factory=dict)
    gone: dict[str, Known] = field(default_factory=dict)
    proven: set[str] = field(default_factory=set)

    def names(self) -> list[str]:
        return [row["name"] for row in self.rows]

    def running(self) -> set[str]:
        return {row["id"] for row in self.rows if row["state"] == "running"}

    def take(self, rows: list[dict[str, Any]], removed: set[str]) -> Iterator[tuple[str, str]]:
        """Go on from a new quiet moment; what should be known by now and is not."""
        now = {row["id"] for row in rows}
        for agent_id in self.live.keys() - now:
            known = self.live.pop(agent_id)
            if agent_id in removed:
                self.gone[agent_id] = known
            else:
                yield "vanished", f"{agent_id} is neither listed nor in the history"
        for agent_id in now & removed:
            yield "twice", f"{agent_id} is listed and in the history"
        for row in rows:
            if row["id"] not in self.live:
                self.live[row["id"]] = Known(row["id"], Path(row["worktree"]))
        self.rows = rows

    def observe(self, agent_id: str) -> None:
        """Note the agent's work as it is now."""
        known = self.live[agent_id]
        if not known.worktree.is_dir():
            return
        tree = read_tree(known.worktree, self.world.persons, is_chat)
        asked = ("symbolic-ref", "-q", "HEAD")
        on = self.world.git(*asked, cwd=known.worktree, ok=False).strip()
        self.live[agent_id] = replace(known, tree=tree, on=on, is_loose=False)

    def loosen(self, name: str) -> None:
        """A command commits the work of this agent, or was killed when about to."""
        for row in self.rows:
            known = self.live.get(row["id"])
            if row["name"] == name and known is not None:
                self.live[row["id"]] = replace(known, is_loose=True)

    def heir(self, known: Known, row: dict[str, Any]) -> Known:
        """The agent that was restored from a removed one, with all that it must have."""
        heir = replace(
            known,
            id=row["id"],
            worktree=Path(row["worktree"]),
            said=known.said | self.journal(known.id),
        )
        self.live[heir.id] = heir
        return heir

    def journal(self, agent_id: str) -> frozenset[str]:
        """The files that the agent has certainly written; its last line may be half written."""
        try:
            text = (self.world.directory / "journal" / agent_id).read_text()
        except FileNotFoundError:
            return frozenset()
        return frozenset(text[: text.rfind("\n") + 1].split())

    def losses(self, known: Known) -> Iterator[str]:
        """What the agent's worktree lacks now."""
        if not known.worktree.is_dir():
            if known.tree is not None or known.said or self.journal(known.id):
                yield "the worktree is gone"
            return
        if known.tree is not None:
            now = read_tree(known.worktree, self.world.persons, is_chat)
            before = replace(known.tree, own=None) if known.is_loose else known.tree
            if before.own is not None and now.own is not None and self._is_taken(known, before.own):
                detached = before.own.head.replace(b"branch ", b"detached ")
                if now.own.head == detached:
                    before = replace(before, own=replace(before.own, head=detached))
            yield from differences(before, now)
        for name in known.said | self.journal(known.id):
            path = known.worktree / "chat" / name
            agent, _, number = name.rpartition("-")
            try:
                if path.read_text() != f"{agent} {number}\n":
                    yield f"{path} says {path.read_bytes()!r}"
            except OSError as error:
                yield f"{path}: {error.strerror}"

    def _is_taken(self, known: Known, own: GitPart) -> bool:
        """Whether the branch that HEAD was on has moved, or is checked out by another copy."""
        if not known.on:
            return False
        tip = self.world.git("rev-parse", "-q", "--verify", known.on, ok=False).strip()
        if not tip or tip.encode() not in own.head:
            return True
        listed = self.world.git("worktree", "list", "--porcelain").split("\n\n")
        others = (e for e in listed if not e.startswith(f"worktree {known.worktree}\n"))
        return any(f"branch {known.on}" in entry.splitlines() for entry in others)


def is_chat(name: bytes) -> bool:
    return name == CHAT or name.startswith(CHAT + b"/")
