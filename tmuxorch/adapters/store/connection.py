"""A connection to the store's file: what is read, and what is written in one transaction."""

from __future__ import annotations

from contextlib import contextmanager

from tmuxorch.adapters.store.database import roll_back, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator


class Connection:
    """For one thread; every failure is `StoreUnusable` or `StoreDamaged`."""

    def __init__(self, db: sqlite3.Connection, state_dir: str) -> None:
        self.db = db
        self.state_dir = state_dir

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One `BEGIN IMMEDIATE` transaction: all of it or nothing."""
        with translated(self.state_dir):
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
                self.db.execute("COMMIT")
            except BaseException:
                roll_back(self.db)
                raise

    def read(self, sql: str, *args: object) -> list[sqlite3.Row]:
        with translated(self.state_dir):
            return self.db.execute(sql, [storable(arg) for arg in args]).fetchall()

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """What is written here may be lost to a power cut: the disk is not waited for."""
        self.db.execute("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            self.db.execute("PRAGMA synchronous = FULL")


def storable(value: object) -> object:
    """Text with bytes that were not UTF-8 as escapes: SQLite takes no other."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode()
    return value
