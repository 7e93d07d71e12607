"""The store on real SQLite files."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agents import changed
from tmuxorch.adapters.store import migrations
from tmuxorch.adapters.store.database import SCHEMA_VERSION
from tmuxorch.adapters.store.migrations import MIGRATIONS
from tmuxorch.adapters.store.records import Store, open_store, open_store_for_reading
from tmuxorch.adapters.store.rows import agent_of, entry_of
from tmuxorch.errors import NameTaken, StateConflict, StoreUnusable
from tmuxorch.model import (
    Agent,
    AgentId,
    Exit,
    HistoryEntry,
    Kind,
    PaneId,
    Place,
    ProcessId,
    Reason,
    State,
    Status,
    WindowId,
)

ME = ProcessId("boot", 1, 100, 2000, 3)
OTHER = ProcessId("boot", 1, 101, 2001, 4)


def make_agent(number: int = 1) -> Agent:
    return agent_of(
        id=AgentId(f"{number:012x}"),
        name=f"worker-{number}",
        repo="/repo",
        task="say\n\u4f60\u597d 'quoted'",
        agent="claude",
        kind=Kind.WORKER,
        state=State.CREATING,
        status=Status.STARTING,
        branch=f"tmuxorch/worker-{number}",
        branch_made=True,
        base="main",
        base_commit="c" * 40,
        worktree=f"/worktrees/{number}",
        command=("sh", "-c", "echo \udcff"),
        copied=(".env",),
        socket="/socket",
        owner=ME,
        created_at=1000.25,
    )


def make_entry(agent: Agent) -> HistoryEntry:
    return entry_of(
        worktree=agent.task.worktree,
        branch_made=agent.task.branch_made,
        copied=agent.task.copied,
        id=agent.task.id,
        name=agent.task.name,
        repo=agent.task.repo,
        task=agent.task.text,
        agent=agent.task.agent,
        branch=agent.task.branch,
        base=agent.task.base,
        base_commit=agent.task.base_commit,
        head_commit=None,
        reason=Reason.USER,
        exit=Exit(None, 9),
        created_at=agent.task.created_at,
        removed_at=1010.5,
        duration_s=10.25,
        commits=1,
        files_changed=2,
        insertions=3,
        deletions=4,
        salvage_ref=None,
        archive=None,
        branch_kept=True,
        restored_at=None,
        last_screen="bye",
        kind=agent.task.kind,
        command=agent.task.command,
        conversation=None,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path))
    yield opened
    opened.close()


def test_a_status_has_an_age_whoever_writes_it(store: Store) -> None:
    store.add(make_agent())
    [made] = store.agents()
    assert made.status_since == made.task.created_at
    before = time.time()
    store.swap(made, expect=[State.CREATING], state=State.RUNNING, status=Status.WORKING)
    [working] = store.agents()
    assert working.status_since is not None
    assert before - 0.1 <= working.status_since <= time.time() + 0.1
    store.swap(working, expect=[State.RUNNING], status=Status.WORKING)
    assert store.agents()[0].status_since == working.status_since


def test_an_agent_survives_a_reload_in_every_field(store: Store, tmp_path: Path) -> None:
    agent = make_agent()
    store.add(agent)
    full = store.swap(
        agent,
        expect=[State.CREATING],
        state=State.EXITED,
        place=Place("/socket", OTHER, "session", WindowId("@1"), PaneId("%2")),
        process=OTHER,
        shim=ME,
        exit=Exit(3, None),
        started_at=1001.5,
        ended_at=1002.75,
    )
    reopened = open_store(str(tmp_path))
    assert reopened.agents() == [full]
    assert full.run.exit == Exit(3, None)
    assert full.run.place is not None
    assert full.run.place.pane == "%2"
    reopened.close()


def test_two_live_agents_of_one_repository_cannot_share_a_name(store: Store) -> None:
    store.add(make_agent(1))
    with pytest.raises(NameTaken):
        store.add(changed(make_agent(2), name="worker-1"))
    store.add(changed(make_agent(3), name="worker-1", repo="/other"))
    assert len(store.agents()) == 2


def test_of_two_that_saw_the_same_state_only_one_changes_it(store: Store) -> None:
    agent = make_agent()
    store.add(agent)
    store.swap(agent, expect=[State.CREATING], state=State.RUNNING, owner=None)
    with pytest.raises(StateConflict):
        store.swap(agent, expect=[State.CREATING], state=State.REMOVING)
    running = store.agents()[0]
    taken = store.swap(running, expect=[State.RUNNING], state=State.REMOVING, owner=OTHER)
    with pytest.raises(StateConflict):
        store.swap(running, expect=[State.RUNNING, State.REMOVING], state=State.RUNNING)
    assert store.agents() == [taken]


def test_history_and_the_end_of_the_agent_are_one_transaction(store: Store) -> None:
    agent = make_agent()
    store.add(agent)
    with pytest.raises(StateConflict):
        store.bury(agent, make_entry(agent))
    assert store.history() == [], "a burial that fails writes no history"
    removing = store.swap(agent, expect=[State.CREATING], state=State.REMOVING)
    buried = store.bury(removing, make_entry(agent))
    store.bury(buried, replace(make_entry(agent), last_screen="again"))
    (entry,) = store.history()
    assert entry == make_entry(agent)
    store.forget(buried)
    assert store.agents() == []


def test_history_is_searched_by_words_and_repository(store: Store) -> None:
    for number, (name, repo) in enumerate([("fix-login", "/a"), ("fix-css", "/b"), ("docs", "/a")]):
        agent = changed(make_agent(number), name=name, repo=repo, state=State.REMOVING)
        store.add(agent)
        store.bury(agent, replace(make_entry(agent), removed_at=float(number)))
    assert [e.task.name for e in store.history()] == ["docs", "fix-css", "fix-login"]
    assert [e.task.name for e in store.history(search="FIX")] == ["fix-css", "fix-login"]
    assert [e.task.name for e in store.history(search="fix login")] == ["fix-login"]
    assert [e.task.name for e in store.history(repo="/a", limit=1)] == ["docs"]
    assert store.history(search="100%") == []


def test_an_emptied_database_is_not_taken_for_no_agents(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.add(make_agent())
    store.close()
    for name in os.listdir(tmp_path):
        if name.startswith("tmuxorch.db"):
            (tmp_path / name).unlink()
    for opened in (open_store, open_store_for_reading):
        with pytest.raises(StoreUnusable, match="empty although it was in use"):
            opened(str(tmp_path))


def test_a_damaged_database_is_said_to_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "tmuxorch.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreUnusable):
        open_store(str(tmp_path))


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    open_store(str(tmp_path)).close()
    with sqlite3.connect(tmp_path / "tmuxorch.db") as db:
        db.execute("PRAGMA user_version = 999")
    db.close()
    with pytest.raises(StoreUnusable, match="newer"):
        open_store(str(tmp_path))


def test_reading_makes_no_store(tmp_path: Path) -> None:
    assert open_store_for_reading(str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


def test_the_store_keeps_its_promises_to_the_disk(store: Store, tmp_path: Path) -> None:
    assert (tmp_path / "tmuxorch.db").stat().st_mode & 0o777 == 0o600
    db = store._db
    assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert db.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_a_report_is_kept_and_shown_while_the_agent_runs(store: Store) -> None:
    agent = make_agent()
    store.add(agent)
    assert store.report(agent.task.id, Status.IDLE, 10.0)
    early = store.agents()[0]
    assert (early.run.reported, early.run.reported_at, early.status) == (
        Status.IDLE,
        10.0,
        agent.status,
    )
    agent = store.swap(early, expect=[State.CREATING], state=State.RUNNING, status=Status.WORKING)
    assert store.report(agent.task.id, Status.WAITING, 11.0)
    shown = store.agents()[0]
    assert (shown.run.reported, shown.run.reported_at, shown.status) == (
        *(Status.WAITING, 11.0, Status.WAITING),
    )
    assert store._db.execute("PRAGMA synchronous").fetchone()[0] == 2
    store.swap(agent, expect=[State.RUNNING], state=State.EXITED, status=Status.DONE)
    assert not store.report(agent.task.id, Status.WORKING, 12.0)
    assert not store.report("nobody", Status.WORKING, 12.0)
    assert store.agents()[0].status is Status.DONE


def test_the_same_report_is_written_again_only_after_a_while(store: Store) -> None:
    agent = make_agent()
    store.add(agent)
    store.swap(agent, expect=[State.CREATING], state=State.RUNNING)
    for at, kept in ((10.0, 10.0), (12.0, 10.0), (16.0, 16.0), (3.0, 3.0)):
        assert store.report(agent.task.id, Status.WORKING, at)
        assert store.agents()[0].run.reported_at == kept


def test_every_migration_is_counted(store: Store) -> None:
    assert len(MIGRATIONS) == SCHEMA_VERSION
    assert store._db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION


def test_a_disk_that_takes_no_more_is_named_and_got_over(store: Store) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(StoreUnusable, match=r"disk is full|disk I/O error"):
            store.add(changed(make_agent(), task="x" * 1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.agents() == []
    store.add(make_agent())
    assert len(store.agents()) == 1


def test_a_directory_that_cannot_be_looked_into_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable):
        open_store_for_reading(str(tmp_path / "file"))


def _first_use(directory: str, number: int) -> None:
    store = open_store(directory)
    store.add(make_agent(number))
    store.close()


def test_sixteen_first_uses_at_once_make_one_store(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(8) as pool:
        pool.starmap(_first_use, [(str(tmp_path), n) for n in range(1, 17)], chunksize=1)
    store = open_store(str(tmp_path))
    assert len(store.agents()) == 16
    store.close()


def test_a_later_step_is_taken_once_and_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(str(tmp_path))
    store.add(make_agent())
    store.close()
    step = ("9999-later", "ALTER TABLE agents ADD COLUMN colour TEXT")
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, step))
    monkeypatch.setattr("tmuxorch.adapters.store.database.SCHEMA_VERSION", len(MIGRATIONS) + 1)
    for _ in range(2):
        store = open_store(str(tmp_path))
        assert store.meta("migration:9999-later") is not None
        store.close()
    with sqlite3.connect(tmp_path / "tmuxorch.db") as db:
        assert db.execute("SELECT count(*), count(colour) FROM agents").fetchone() == (1, 0)
    db.close()
