"""Questions about all removed agents at once, answered without reading their screens."""

from __future__ import annotations

from tmuxorch.adapters.store.rows import read_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from dataclasses import dataclass

    from tmuxorch.model import AgentId, HistoryEntry
else:
    from tmuxorch.values import dataclass


@dataclass(frozen=True, slots=True)
class LeftBranch:
    """A branch that a removed agent worked on, and the commit at which it left it."""

    repo: str
    branch: str
    commit: str
    agent_id: AgentId
    name: str


class Past:
    """The history of a store; `read` runs a statement and gives its rows."""

    def __init__(self, read: Callable[..., list[sqlite3.Row]]) -> None:
        self._read = read

    def ids(self) -> frozenset[str]:
        return frozenset(row["id"] for row in self._read("SELECT id FROM history"))

    def names(self, repo: str | None = None) -> list[tuple[str, str]]:
        """Name and id of each, of one repository or of all."""
        here, args = ("", ()) if repo is None else (" WHERE repo = ?", (repo,))
        return [
            (row["name"], row["id"])
            for row in self._read(f"SELECT name, id FROM history{here}", *args)
        ]

    def repos(self) -> list[str]:
        """Every repository that a removed agent worked in."""
        return [row["repo"] for row in self._read("SELECT DISTINCT repo FROM history")]

    def old_saves(self) -> list[AgentId]:
        """Those whose save is a snapshot under a ref, oldest first."""
        rows = self._read(
            "SELECT id FROM history WHERE salvage_ref IS NOT NULL"
            " AND (archive IS NULL OR archive LIKE '%.tar') ORDER BY seq"
        )
        return [row["id"] for row in rows]

    def left_branches(self) -> list[LeftBranch]:
        """The branches of our own making, each as the last agent on it left it."""
        rows = self._read(
            "SELECT repo, branch, head_commit, id, name FROM history"
            " WHERE branch_made AND head_commit IS NOT NULL ORDER BY removed_at, seq"
        )
        last = {(row["repo"], row["branch"]): row for row in rows}
        return [LeftBranch(*row) for row in last.values()]

    def older_than(self, at: float) -> Iterator[HistoryEntry]:
        """The entries of that time and before, oldest first, read one by one."""
        order = "ORDER BY removed_at, seq"
        for row in self._read(f"SELECT seq FROM history WHERE removed_at < ? {order}", at):
            for entry in self._read("SELECT * FROM history WHERE seq = ?", row["seq"]):
                yield read_entry(entry)
