"""The store's schema as named steps; a released step is never edited, only followed."""

MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "0001-agents-history-events",
        """
        CREATE TABLE agents (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            repo TEXT NOT NULL,
            task TEXT NOT NULL,
            agent TEXT NOT NULL,
            kind TEXT NOT NULL,
            state TEXT NOT NULL,
            status TEXT NOT NULL,
            branch TEXT NOT NULL,
            branch_made INTEGER NOT NULL,
            base TEXT NOT NULL,
            base_commit TEXT NOT NULL,
            worktree TEXT NOT NULL UNIQUE,
            command TEXT NOT NULL,
            copied TEXT NOT NULL DEFAULT '[]',
            conversation TEXT,
            socket TEXT NOT NULL,
            server TEXT,
            session TEXT,
            window TEXT,
            pane TEXT,
            process TEXT,
            shim TEXT,
            owner TEXT,
            step TEXT NOT NULL DEFAULT '',
            reason TEXT,
            keep_branch INTEGER NOT NULL DEFAULT 0,
            exit_code INTEGER,
            exit_signal INTEGER,
            stopped INTEGER NOT NULL DEFAULT 0,
            restarts INTEGER NOT NULL DEFAULT 0,
            created_at REAL NOT NULL,
            started_at REAL,
            ended_at REAL,
            last_activity_at REAL,
            UNIQUE (repo, name)
        ) STRICT;
        CREATE TABLE history (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            repo TEXT NOT NULL,
            task TEXT NOT NULL,
            agent TEXT NOT NULL,
            kind TEXT NOT NULL,
            command TEXT NOT NULL,
            conversation TEXT,
            branch TEXT NOT NULL,
            base TEXT NOT NULL,
            base_commit TEXT NOT NULL,
            head_commit TEXT,
            reason TEXT NOT NULL,
            exit_code INTEGER,
            exit_signal INTEGER,
            created_at REAL NOT NULL,
            removed_at REAL NOT NULL,
            duration_s REAL NOT NULL,
            commits INTEGER,
            files_changed INTEGER,
            insertions INTEGER,
            deletions INTEGER,
            salvage_ref TEXT,
            archive TEXT,
            branch_kept INTEGER NOT NULL,
            restored_at REAL,
            last_screen TEXT
        ) STRICT;
        CREATE INDEX history_by_time ON history (removed_at DESC);
        CREATE TABLE events (
            seq INTEGER PRIMARY KEY,
            at REAL NOT NULL,
            agent TEXT NOT NULL,
            name TEXT NOT NULL,
            what TEXT NOT NULL,
            why TEXT NOT NULL
        ) STRICT;
        CREATE INDEX events_by_agent ON events (agent, seq);
        """,
    ),
    (
        "0002-restarts",
        """
        ALTER TABLE agents ADD COLUMN deaths TEXT NOT NULL DEFAULT '[]';
        ALTER TABLE agents ADD COLUMN restart_at REAL
        """,
    ),
    (
        "0003-reported-status",
        """
        ALTER TABLE agents ADD COLUMN reported TEXT;
        ALTER TABLE agents ADD COLUMN reported_at REAL
        """,
    ),
)
