"""The store's file: opened, made on first use, and brought up to date."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager

from tmuxorch.errors import StoreDamaged, StoreUnusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "tmuxorch.db"
BUSY_TIMEOUT_S = 30.0
SCHEMA_VERSION = 4

# A database that comes up empty although this file says it was filled is not
# "no agents": nothing may be deleted on the strength of it.
MARKER = "initialised"


def open_database(state_dir: str) -> sqlite3.Connection:
    """A connection to the store's file, which is made if there is none (the directory must be)."""
    db = _connect(os.path.join(state_dir, FILE))
    try:
        if db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
            _migrate(db, state_dir)
    except BaseException:
        db.close()
        raise
    return db


def was_made(state_dir: str) -> bool:
    """Whether a store was ever made there, even if its file has gone since."""
    return any(_is_there(os.path.join(state_dir, name)) for name in (FILE, MARKER))


def _is_there(path: str) -> bool:
    """Not `os.path.exists`, which says no to a directory that it may not look into."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def roll_back(db: sqlite3.Connection) -> None:
    """On a full disk SQLite has done so itself, and a second time would hide why."""
    if db.in_transaction:
        db.execute("ROLLBACK")


def _connect(path: str) -> sqlite3.Connection:
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = sqlite3.connect(
        f"file:{quoted}?mode=rwc", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
    )
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA synchronous = FULL")
    return db


def _migrate(db: sqlite3.Connection, state_dir: str) -> None:
    from tmuxorch.adapters.store.migrations import MIGRATIONS

    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found > len(MIGRATIONS):
        raise StoreUnusable(
            f"the store in {state_dir} was written by a newer tmuxorch and was left as it is; "
            "upgrade this one"
        )
    marker = os.path.join(state_dir, MARKER)
    if found == 0 and os.path.exists(marker):
        # Another process may be in the middle of making it: look again under the lock.
        db.execute("BEGIN IMMEDIATE")
        found = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute("ROLLBACK")
        if found == 0:
            raise StoreDamaged(
                f"the store in {state_dir} is empty although it was in use, so nothing will be "
                "deleted; bring tmuxorch.db back from a backup or run `tmuxorch doctor --repair`"
            )
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    try:
        done = db.execute("PRAGMA user_version").fetchone()[0]
        if done == 0:
            store_id = os.urandom(6).hex()
            db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT")
            db.execute("INSERT INTO meta VALUES ('store_id', ?)", [store_id])
        for name, script in MIGRATIONS[done:]:
            for statement in _statements(script):
                db.execute(statement)
            db.execute("INSERT INTO meta VALUES (?, ?)", [f"migration:{name}", str(time.time())])
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        with open(marker, "w") as f:
            f.write("the store beside this file has been in use\n")
        db.execute("COMMIT")
    except BaseException:
        roll_back(db)
        raise
    os.chmod(os.path.join(state_dir, FILE), 0o600)


def _statements(script: str) -> Iterator[str]:
    """The script's statements; a trigger's body has semicolons of its own."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def translated(state_dir: str) -> Iterator[None]:
    """Turn SQLite's words into a sentence; its exceptions stay in here."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except (sqlite3.Error, OSError) as e:
        if _is_damage(e):
            raise StoreDamaged(
                f"the store in {state_dir} cannot be used: it is damaged ({e}); bring a backup "
                "back or run `tmuxorch doctor --repair`"
            ) from e
        raise StoreUnusable(
            f"the store in {state_dir} cannot be used ({e}); check its permissions and free space"
        ) from e


def _is_damage(error: Exception) -> bool:
    """Whether the file itself is wrong, and not what surrounds it (rights, room, a lock)."""
    code = getattr(error, "sqlite_errorcode", None)
    known = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    is_incomplete = str(error).startswith(("no such table", "no such column"))
    return code is not None and (code & 0xFF in known or is_incomplete)
