"""The one record of agents, history and decisions: SQLite in the state directory."""

from __future__ import annotations

import json
import sqlite3

from tmuxorch import paths
from tmuxorch.adapters.store.connection import Connection
from tmuxorch.adapters.store.database import open_database, translated, was_made
from tmuxorch.adapters.store.decision_log import EVENTS_KEPT, append, record
from tmuxorch.adapters.store.past import Past
from tmuxorch.adapters.store.rows import (
    as_columns,
    as_text,
    columns_of_agent,
    columns_of_entry,
    insertion,
    read_agent,
    read_entry,
)
from tmuxorch.errors import NameTaken, StateConflict, StoreDamaged
from tmuxorch.model import (
    Agent,
    AgentId,
    Event,
    EventKind,
    HistoryEntry,
    Milestone,
    Reason,
    State,
    Status,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from dataclasses import dataclass
    from typing import Any
else:
    from tmuxorch.values import dataclass

REPORT_STEP_S = 5.0
_NEWEST = "ORDER BY seq DESC"  # as they were removed, whatever the clock showed
_KEEP_FIRST_BURIAL = (
    " ON CONFLICT (id) DO UPDATE SET salvage_ref = coalesce(excluded.salvage_ref, salvage_ref),"
    " archive = coalesce(excluded.archive, archive)"
)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A change of what is shown of a living agent, and why if that is worth telling."""

    agent: Agent
    changes: dict[str, Any]
    what: str = ""
    why: str = ""


class Store:
    """An open store. Every write is one `BEGIN IMMEDIATE` transaction."""

    def __init__(self, connection: Connection, store_id: str) -> None:
        self._connection = connection
        self._db = connection.db
        self._write, self._read = connection.write, connection.read
        self.state_dir = connection.state_dir
        self.id = store_id

    def close(self) -> None:
        self._db.close()

    # -- agents ---------------------------------------------------------------

    def agents(self, *, repo: str | None = None) -> list[Agent]:
        """The recorded agents, oldest first."""
        if repo is None:
            rows = self._read("SELECT * FROM agents ORDER BY created_at, id")
        else:
            rows = self._read("SELECT * FROM agents WHERE repo = ? ORDER BY created_at, id", repo)
        return [read_agent(row) for row in rows]

    def agent(self, agent_id: str) -> Agent | None:
        rows = self._read("SELECT * FROM agents WHERE id = ?", agent_id)
        return read_agent(rows[0]) if rows else None

    def add(self, agent: Agent) -> None:
        """Record a new agent; `NameTaken` if a live one of that repository has its name."""
        columns = columns_of_agent(agent)
        try:
            with self._write() as db:
                db.execute(insertion("agents", columns), list(columns.values()))
                why = f"task: {agent.task.text}" if agent.task.text else ""
                record(db, agent, EventKind.CREATING, why)
        except sqlite3.IntegrityError as e:
            raise NameTaken(
                f"the name {agent.task.name!r} is taken in {agent.task.repo}; choose another with "
                "-n"
            ) from e

    def swap(
        self,
        agent: Agent,
        *,
        expect: Iterable[State],
        what: str = "",
        why: str = "",
        **changes: Any,
    ) -> Agent:
        """Change the agent if it is still as the caller saw it, else `StateConflict`.

        "As seen" is the state being one of `expect` and the same owner: two removers, or
        a remover and a restarter, cannot both win.
        """
        if agent.damage:
            raise StateConflict(
                f"the record of {agent.task.name} cannot be read ({agent.damage}), so nothing was "
                f"done; its files are in {agent.task.worktree}"
            )
        expected = list(expect)
        columns = as_columns(changes)
        sets = ", ".join(f"{name} = ?" for name in columns)
        marks = ", ".join("?" * len(expected))
        with self._write() as db:
            try:
                changed = db.execute(
                    f"UPDATE agents SET {sets} WHERE id = ? AND state IN ({marks}) AND owner IS ?"
                    " RETURNING id",
                    [*columns.values(), agent.task.id, *expected, as_text(agent.owner)],
                ).fetchall()
            except sqlite3.IntegrityError as e:  # the one rule a change can break
                raise NameTaken(
                    f"the name {changes.get('name')!r} is taken in {agent.task.repo}"
                ) from e
            if not changed:
                raise StateConflict(
                    f"{agent.task.name} was changed by another command meanwhile; "
                    "nothing was done, look at `tmuxorch ls` and try again"
                )
            if what:
                record(db, agent, what, why)
            # Again, for what the store itself notes of a change.
            (now,) = db.execute("SELECT * FROM agents WHERE id = ?", [agent.task.id]).fetchall()
        return read_agent(now)

    def show(self, sightings: Sequence[Sighting]) -> None:
        """Write what living agents are doing, all in one transaction.

        An agent that is no longer running is left alone. Only what a person may ask about
        (`why` is not empty) goes to the decision log.
        """
        with self._write() as db:
            for sighting in sightings:
                columns = as_columns(sighting.changes)
                sets = ", ".join(f"{name} = ?" for name in columns)
                changed = db.execute(
                    f"UPDATE agents SET {sets} WHERE id = ? AND state = ?",
                    [*columns.values(), sighting.agent.task.id, State.RUNNING],
                ).rowcount
                if changed and sighting.why:
                    record(db, sighting.agent, sighting.what, sighting.why)

    def report(self, agent_id: str, status: Status, at: float) -> bool:
        """Note what an agent says of itself and show it; False if no such agent is alive.

        It comes at every use of a tool, so the same word is written again only after a while,
        and the disk is not waited for: a report lost to a power cut describes nobody.
        """
        known = self._read(
            "SELECT state, status, reported, reported_at FROM agents WHERE id = ?", agent_id
        )
        if not known or known[0]["state"] not in (State.CREATING, State.RUNNING):
            return False
        said = (known[0]["status"], known[0]["reported"])
        if said == (status, status) and 0 <= at - known[0]["reported_at"] < REPORT_STEP_S:
            return True
        shown = (status, State.RUNNING, status)
        alive = (State.CREATING, State.RUNNING)
        with self._connection.unhurried(), self._write() as db:
            changed = db.execute(
                "UPDATE agents SET reported = ?, reported_at = ?,"
                " question = iif(status = ?, question, NULL),"
                " status = iif(state = ?, ?, status) WHERE id = ? AND state IN (?, ?)",
                [status, at, *shown, agent_id, *alive],
            ).rowcount
        return bool(changed)

    def data_version(self) -> int:
        """A number that changes when another connection has written."""
        return int(self._read("PRAGMA data_version")[0][0])

    def version(self) -> tuple[int, int]:
        """A value that changes when anybody has written, this connection too."""
        return self.data_version(), self._db.total_changes

    def bury(self, agent: Agent, entry: HistoryEntry) -> Agent:
        """Write the history row and the end of the agent in one transaction.

        Idempotent: the agent's id is the row's key, so a second burial changes nothing but
        adds where work is that was saved only then.
        """
        columns = columns_of_entry(entry)
        with self._write() as db:
            db.execute(
                insertion("history", columns) + _KEEP_FIRST_BURIAL,
                list(columns.values()),
            )
            rows = db.execute(
                "UPDATE agents SET step = ? WHERE id = ? AND state = ? AND owner IS ? RETURNING *",
                [Milestone.BURIED, agent.task.id, State.REMOVING, as_text(agent.owner)],
            ).fetchall()
            if not rows:
                raise StateConflict(f"{agent.task.name} is being removed by another command")
            record(db, agent, EventKind.REMOVED, f"reason: {entry.reason}")
        return read_agent(rows[0])

    def unbury(self, agent: Agent, why: str) -> None:
        """Keep an agent after all whose removal could not be ended: no history, quarantined."""
        with self._write() as db:
            db.execute(
                "UPDATE agents SET state = ?, status = ?, owner = NULL, step = ? WHERE id = ?",
                [State.QUARANTINED, Status.QUARANTINED, Milestone.BEGUN, agent.task.id],
            )
            db.execute("DELETE FROM history WHERE id = ?", [agent.task.id])
            record(db, agent, EventKind.QUARANTINED, why)

    def keep_branch(self, agent: Agent, why: str) -> None:
        """Note that the branch of a buried agent had to stay after all."""
        with self._write() as db:
            db.execute("UPDATE history SET branch_kept = 1 WHERE id = ?", [agent.task.id])
            record(db, agent, EventKind.BRANCH_KEPT, why)

    def forget(self, agent: Agent) -> None:
        """Drop the row of a buried agent: the last step of a removal."""
        with self._write() as db:
            db.execute(
                "DELETE FROM agents WHERE id = ? AND state = ?", [agent.task.id, State.REMOVING]
            )

    # -- history and events ----------------------------------------------------

    def history(
        self,
        *,
        search: str = "",
        repo: str | None = None,
        reason: Reason | None = None,
        since: float | None = None,
        limit: int = 50,
    ) -> list[HistoryEntry]:
        """Removed agents, newest first; each word of `search` begins a word of the entry."""
        where, args = ["1"], list[object]()
        if words := search.split():
            where.append("seq IN (SELECT rowid FROM history_words WHERE history_words MATCH ?)")
            args.append(" AND ".join(f"{_quoted(word)} *" for word in words))
        for condition, value in (("repo = ?", repo), ("reason = ?", reason)):
            if value is not None:
                where.append(condition)
                args.append(value)
        if since is not None:
            where.append("removed_at >= ?")
            args.append(since)
        return self._entries(f"{' AND '.join(where)} {_NEWEST} LIMIT ?", *args, limit)

    def entries(self, agent_ids: Collection[str]) -> list[HistoryEntry]:
        """The entries of these removed agents, newest first."""
        these = "id IN (SELECT value FROM json_each(?))"
        return self._entries(f"{these} {_NEWEST}", json.dumps([*agent_ids]))

    def _entries(self, where: str, *args: object) -> list[HistoryEntry]:
        return [
            read_entry(row) for row in self._read(f"SELECT * FROM history WHERE {where}", *args)
        ]

    def history_entry(self, agent_id: str) -> HistoryEntry | None:
        rows = self._read("SELECT * FROM history WHERE id = ?", agent_id)
        return read_entry(rows[0]) if rows else None

    @property
    def past(self) -> Past:
        """Questions about all removed agents at once."""
        return Past(self._read)

    def amend_history(
        self, agent_id: AgentId, *, salvage_ref: str | None, archive: str | None
    ) -> None:
        """Note work that was saved after the entry had been written."""
        with self._write() as db:
            db.execute(
                "UPDATE history SET salvage_ref = ?, archive = coalesce(?, archive) WHERE id = ?",
                [salvage_ref, archive, agent_id],
            )

    def note_admin(self, agent: Agent, admin: str) -> None:
        """Record where git keeps what belongs to the worktree, of a row that does not say."""
        with self._write() as db:
            db.execute(
                "UPDATE agents SET admin = ? WHERE id = ? AND admin IS NULL", [admin, agent.task.id]
            )

    def finish_restore(
        self, agent: Agent, entry: HistoryEntry, *, admin: str | None, at: float
    ) -> Agent:
        """Give a restored agent to its person and note it in the history, both or neither."""
        with self._write() as db:
            rows = db.execute(
                "UPDATE agents SET state = ?, status = ?, stopped = 1, owner = NULL, ended_at = ?,"
                " keep_branch = 0, admin = ?"
                " WHERE id = ? AND state = ? AND owner IS ? RETURNING *",
                [
                    *(State.EXITED, Status.DONE, at, admin),
                    *(agent.task.id, State.CREATING, as_text(agent.owner)),
                ],
            ).fetchall()
            if not rows:
                raise StateConflict(f"{agent.task.name} was changed by another command meanwhile")
            db.execute("UPDATE history SET restored_at = ? WHERE id = ?", [at, entry.task.id])
            record(db, agent, EventKind.RESTORED, f"from {entry.task.name} ({entry.task.id})")
        return read_agent(rows[0])

    def drop_history(self, agent_id: AgentId) -> None:
        """Forget an entry whose save has gone."""
        with self._write() as db:
            db.execute("DELETE FROM history WHERE id = ?", [agent_id])

    def record(self, agent: Agent, what: str, why: str = "") -> None:
        """Append to the decision log."""
        with self._write() as db:
            record(db, agent, what, why)

    def note(self, what: str, why: str) -> None:
        """Append what was done about no agent in particular."""
        with self._write() as db:
            append(db, "", "tmuxorch", what, why)

    def events(
        self, *, agent_id: str | None = None, after: int = 0, limit: int = EVENTS_KEPT
    ) -> list[Event]:
        """The newest `limit` decisions after number `after`, oldest first."""
        one = "" if agent_id is None else "agent = ? AND "
        args = [*([] if agent_id is None else [agent_id]), after, limit]
        rows = self._read(
            f"SELECT * FROM events WHERE {one}seq > ? ORDER BY seq DESC LIMIT ?", *args
        )
        return [Event(**{**dict(row), "agent": AgentId(row["agent"])}) for row in reversed(rows)]

    # -- meta --------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        rows = self._read("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0]["value"]) if rows else None

    def find_damage(self) -> str | None:
        """What SQLite finds wrong with its file; None if it is whole."""
        said = str(self._read("PRAGMA quick_check(1)")[0][0])
        return None if said == "ok" else said

    def take_id(self, store_id: str) -> None:
        """Be the store that the marks out there name; for one that was made anew."""
        self.set_meta("store_id", store_id)
        self.id = store_id

    def set_meta(self, key: str, value: str) -> None:
        with self._write() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])


def open_store(state_dir: str) -> Store:
    """Open the store, making it on first use (the directory must be there)."""
    paths.check_ours(state_dir)
    with translated(state_dir):
        db = open_database(state_dir)
        try:
            row = db.execute("SELECT value FROM meta WHERE key = 'store_id'").fetchone()
        except BaseException:
            db.close()
            raise
    if row is None:
        db.close()
        raise StoreDamaged(
            f"the store in {state_dir} has lost its own id; bring tmuxorch.db back from a backup "
            "or run `tmuxorch doctor --repair`"
        )
    return Store(Connection(db, state_dir), row[0])


def open_store_for_reading(state_dir: str) -> Store | None:
    """Open an existing store, or None where none was ever made."""
    with translated(state_dir):
        made = was_made(state_dir)
    return open_store(state_dir) if made else None


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'
