"""Who is listed, and whom of them the person means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxorch.model import Status
from tmuxorch.tui.list_lines import ListLine, lines_of, visible_rows
from tmuxorch.tui.snapshot import AgentRow, Changes, Snapshot

if TYPE_CHECKING:
    from tmuxorch.model import AgentId


class Roster:
    """The newest snapshot, narrowed and ordered as the person wants it; knows no widget."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.rows: list[AgentRow] = []
        self.selected: AgentId | None = None
        self.marked: set[AgentId] = set()
        self.words = ""
        self.everywhere = False
        self.changes: dict[AgentId, Changes] = {}
        # What this screen is doing to an agent right now, in a word.
        self.doing: dict[AgentId, str] = {}

    def take(self, snapshot: Snapshot) -> None:
        """These are the agents now; what was kept of others is forgotten."""
        self.snapshot = snapshot
        there = {row.id for row in snapshot.rows}
        self.marked &= there
        self.changes = {k: v for k, v in self.changes.items() if k in there}

    def arrange(self, repo: str | None) -> None:
        """List those of `repo` (all if None); the selected one stays, or its neighbour is."""
        index = self.index
        self.rows = visible_rows(self.snapshot.rows, repo=repo, words=self.words)
        ids = [row.id for row in self.rows]
        if self.selected not in ids:
            self.selected = ids[min(index, len(ids) - 1)] if ids else None

    def lines(self, now: float) -> list[ListLine]:
        return lines_of(
            self.rows,
            now=now,
            marked=self.marked,
            doing=self.doing,
            changes=self.changes,
            headings=self.everywhere,
        )

    @property
    def row(self) -> AgentRow | None:
        """The selected agent."""
        return next((row for row in self.rows if row.id == self.selected), None)

    @property
    def chosen(self) -> list[AgentRow]:
        """The marked agents that are shown, or else the selected one."""
        marked = [row for row in self.rows if row.id in self.marked] if self.marked else []
        if marked:
            return marked
        row = self.row
        return [row] if row else []

    @property
    def index(self) -> int:
        """Where the selected one stands."""
        return next((i for i, row in enumerate(self.rows) if row.id == self.selected), 0)

    def select_at(self, index: int) -> None:
        """The one there, or the nearest."""
        if self.rows:
            self.selected = self.rows[max(0, min(index, len(self.rows) - 1))].id

    def select_next_waiting(self) -> None:
        at = self.index
        for row in (*self.rows[at + 1 :], *self.rows[: at + 1]):
            if row.status is Status.WAITING:
                self.selected = row.id
                return

    def mark_all_or_none(self) -> None:
        shown = {row.id for row in self.rows}
        self.marked = set() if self.marked >= shown else shown
