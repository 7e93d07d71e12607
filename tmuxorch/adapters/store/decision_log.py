"""The decision log: what was done, and the facts behind it, within the transaction that did it."""

from __future__ import annotations

import time

from tmuxorch.adapters.store.connection import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from tmuxorch.model import Agent

EVENTS_KEPT = 50_000


def record(db: sqlite3.Connection, agent: Agent, what: str, why: str) -> None:
    """Append what was done with an agent."""
    append(db, agent.task.id, agent.task.name, what, why)


def append(db: sqlite3.Connection, agent_id: str, name: str, what: str, why: str) -> None:
    db.execute(
        "INSERT INTO events (at, agent, name, what, why) VALUES (?, ?, ?, ?, ?)",
        [time.time(), agent_id, name, what, storable(why)],
    )
    db.execute("DELETE FROM events WHERE seq <= last_insert_rowid() - ?", [EVENTS_KEPT])
