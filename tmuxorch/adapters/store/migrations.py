"""The store's schema as named steps; a released step is never edited, only followed."""

MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        # `seq` keeps the words' row numbers, which a table without an integer key may change.
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
            copied TEXT NOT NULL,
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
            deaths TEXT NOT NULL DEFAULT '[]',
            restart_at REAL,
            reported TEXT,
            reported_at REAL,
            UNIQUE (repo, name)
        ) STRICT;
        CREATE TABLE history (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            repo TEXT NOT NULL,
            task TEXT NOT NULL,
            agent TEXT NOT NULL,
            kind TEXT NOT NULL,
            command TEXT NOT NULL,
            conversation TEXT,
            branch TEXT NOT NULL,
            branch_made INTEGER NOT NULL,
            base TEXT NOT NULL,
            base_commit TEXT NOT NULL,
            head_commit TEXT,
            worktree TEXT NOT NULL,
            copied TEXT NOT NULL,
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
        CREATE VIRTUAL TABLE history_words USING fts5 (
            id, name, task, agent, branch, reason, last_screen,
            content = 'history', content_rowid = 'seq',
            tokenize = 'unicode61 remove_diacritics 2'
        );
        CREATE TRIGGER history_added AFTER INSERT ON history BEGIN
            INSERT INTO history_words (rowid, id, name, task, agent, branch, reason, last_screen)
            VALUES (new.seq, new.id, new.name, new.task, new.agent, new.branch, new.reason,
                    new.last_screen);
        END;
        CREATE TRIGGER history_dropped AFTER DELETE ON history BEGIN
            INSERT INTO history_words
                (history_words, rowid, id, name, task, agent, branch, reason, last_screen)
            VALUES ('delete', old.seq, old.id, old.name, old.task, old.agent, old.branch,
                    old.reason, old.last_screen);
        END;
        CREATE TRIGGER history_changed
        AFTER UPDATE OF id, name, task, agent, branch, reason, last_screen ON history BEGIN
            INSERT INTO history_words
                (history_words, rowid, id, name, task, agent, branch, reason, last_screen)
            VALUES ('delete', old.seq, old.id, old.name, old.task, old.agent, old.branch,
                    old.reason, old.last_screen);
            INSERT INTO history_words (rowid, id, name, task, agent, branch, reason, last_screen)
            VALUES (new.seq, new.id, new.name, new.task, new.agent, new.branch, new.reason,
                    new.last_screen);
        END;
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
    ("0002-question", "ALTER TABLE agents ADD COLUMN question TEXT"),
    ("0003-admin", "ALTER TABLE agents ADD COLUMN admin TEXT"),
    (
        # By the store itself, so that no writer can forget it.
        "0004-status-since",
        """
        ALTER TABLE agents ADD COLUMN status_since REAL;
        CREATE TRIGGER status_begun AFTER INSERT ON agents WHEN new.status_since IS NULL BEGIN
            UPDATE agents SET status_since = new.created_at WHERE id = new.id;
        END;
        CREATE TRIGGER status_changed AFTER UPDATE OF status ON agents
        WHEN new.status IS NOT old.status BEGIN
            UPDATE agents SET status_since = (julianday('now') - 2440587.5) * 86400.0
            WHERE id = new.id;
        END;
        """,
    ),
)
