"""Workers without a window, made and removed in this process: for many kinds of work, fast."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store.rows import agent_of
from tmuxorch.model import Agent, AgentId, HistoryEntry, Kind, Reason, State, Status
from tmuxorch.service import places
from tmuxorch.service.context import Context, open_context
from tmuxorch.service.removal import removal, restoring

GITCONFIG = """
[user]
name = Test
email = test@example.org
[init]
defaultBranch = main
[protocol "file"]
allow = always
[advice]
detachedHead = false
"""

# What git notes for its own use, and makes again when it needs it.
NOTES = {"COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD"}


@dataclass(frozen=True)
class Look:
    """All that must be the same before a removal and after the restore."""

    files: dict[bytes, tuple[str, bytes]]
    status: str
    index: str
    head: str
    state: str


class Workshop:
    """A repository, a store and workers that have ended."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "GIT_CONFIG_GLOBAL": str(directory / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "TMUXORCH_CONFIG": str(directory / "config.toml"),
            "TMUXORCH_STATE_DIR": str(directory / "state"),
            "TMUXORCH_WORKTREES_DIR": str(directory / "worktrees"),
        }
        (directory / "gitconfig").write_text(GITCONFIG)
        (directory / "config.toml").write_text("[cleanup]\ngrace_s = 0.1\n")
        self.repo = directory / "repo"
        self.made = 0

    @classmethod
    def make(cls, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
        shop = cls(directory)
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            monkeypatch.delenv(name)
        for name, value in shop.environ.items():
            monkeypatch.setenv(name, value)
        shop.open()
        return shop

    def open(self) -> None:
        """Make the repository and the store."""
        self.repo.mkdir()
        self.sh(self.repo, "init", "-q")
        write(self.repo / "README", "hello\n")
        write(self.repo / "src/app.py", "print('hi')\n")
        write(self.repo / "run.sh", "#!/bin/sh\n").chmod(0o755)
        (self.repo / "link").symlink_to("README")
        write(self.repo / ".gitignore", "*.log\n.env\nbuild/\n")
        self.sh(self.repo, "add", ".")
        self.sh(self.repo, "commit", "-qm", "first")
        self.ctx: Context = open_context(self.environ, socket=str(self.directory / "no-tmux"))
        self.config = self.ctx.settings.own()

    def sh(self, directory: Path | str, *arguments: str, ok: bool = True) -> str:
        argv = ["git", "-C", str(directory), *arguments]
        done = subprocess.run(argv, env=self.environ, check=False, capture_output=True)
        assert not ok or done.returncode == 0, f"{arguments}: {os.fsdecode(done.stderr)}"
        return os.fsdecode(done.stdout)

    def commit(self, directory: Path, name: str, text: str = "text\n") -> str:
        write(directory / name, text)
        self.sh(directory, "add", "--", name)
        self.sh(directory, "commit", "-qm", f"write {name}")
        return self.sh(directory, "rev-parse", "HEAD").strip()

    def worker(self, name: str | None = None, **changes: object) -> Agent:
        """A worker with branch and worktree that has ended, as the store knows it."""
        self.made += 1
        name = name or f"w{self.made}"
        agent_id = AgentId(os.urandom(6).hex())
        base = self.sh(self.repo, "rev-parse", "HEAD").strip()
        values: dict[str, object] = {
            "id": agent_id, "name": name, "repo": str(self.repo), "task": f"task of {name}",
            "agent": "sh", "kind": Kind.WORKER, "state": State.EXITED, "status": Status.DONE,
            "branch": f"tmuxorch/{name}", "branch_made": True, "base": "main", "base_commit": base,
            "worktree": str(self.directory / "worktrees" / "repo" / f"{name}-{agent_id[:4]}"),
            "command": ("sh",), "copied": (), "conversation": None, "socket": self.ctx.socket,
            "place": None, "process": None, "shim": None, "owner": None,
            "reason": None, "keep_branch": False, "exit": None, "stopped": True, "restarts": 0,
            "created_at": self.ctx.clock(), "started_at": None, "ended_at": None,
            "last_activity_at": None,
        }  # fmt: skip
        values.update(changes)
        agent = agent_of(**values)
        self.ctx.store.add(agent)
        repo = git.find_repo(agent.task.repo)
        places.mark(agent.task.worktree)
        git.add_worktree(
            repo,
            agent.task.worktree,
            branch=agent.task.branch,
            new_branch=agent.task.branch_made,
            commit=agent.task.base_commit,
            reason=self.ctx.lock_reason(agent),
            marker={},
        )
        places.seal(agent.task.worktree)
        return agent

    def forget(self, agent: Agent) -> None:
        """Lose the record, as with a store that comes from an old backup."""
        db = sqlite3.connect(self.directory / "state" / "tmuxorch.db")
        with db:
            db.execute("DELETE FROM agents WHERE id = ?", [agent.task.id])
        db.close()

    def remove(self, agent: Agent, reason: Reason = Reason.USER) -> HistoryEntry:
        current = self.ctx.store.agent(agent.task.id)
        assert current is not None
        return removal.remove(self.ctx, current, reason=reason)

    def restore(self, entry: HistoryEntry, name: str | None = None) -> Agent:
        return restoring.restore(self.ctx, self.config, entry, name=name)

    def look(self, top: Path) -> Look:
        """Files with type, mode and bytes; git's view of them; HEAD and what is under way."""
        own = Path(git.git_dir(str(top)))
        status = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching")
        head = self.sh(top, "symbolic-ref", "-q", "HEAD", ok=False)
        return Look(
            files=dict(self._files(os.fsencode(top))),
            status=self.sh(top, *status, ok=False),
            index=self.sh(top, "ls-files", "-z", "-v", "-s"),
            head=head + self.sh(top, "rev-parse", "-q", "--verify", "HEAD", ok=False),
            state=" ".join(
                sorted(n for n in os.listdir(own) if (n.isupper() or "-" in n) and n not in NOTES)
            ),
        )

    def _files(self, top: bytes) -> Iterator[tuple[bytes, tuple[str, bytes]]]:
        """Every entry but the worktree's own `.git`; those of repositories inside count."""
        pending = [b""]
        while pending:
            below = pending.pop()
            entries = list(os.scandir(os.path.join(top, below)))
            for entry in entries:
                name = os.path.join(below, entry.name)
                mode = entry.stat(follow_symlinks=False).st_mode
                if name == b".git":
                    continue
                if stat.S_ISLNK(mode):
                    yield name, ("link", os.readlink(entry.path))
                elif stat.S_ISDIR(mode):
                    pending.append(name)
                elif stat.S_ISREG(mode):
                    yield name, (oct(mode), Path(os.fsdecode(entry.path)).read_bytes())
                elif stat.S_ISFIFO(mode):
                    yield name, (oct(mode), b"")
            if not entries:
                yield below, ("empty directory", b"")

    def collect_garbage(self) -> None:
        self.sh(self.repo, "reflog", "expire", "--expire=now", "--all")
        self.sh(self.repo, "gc", "-q", "--prune=now")

    def close(self) -> None:
        self.ctx.store.close()
        # rmtree of Python 3.11 recurses, and some trees are deeper than that.
        subprocess.run(["rm", "-rf", str(self.directory)], check=False)


def write(path: Path, data: bytes | str = b"new\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path
