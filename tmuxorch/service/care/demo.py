"""A throw-away world for trying every key: a repository, a tmux server and six agents."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.system import processes, procfs
from tmuxorch.adapters.system.process_table import ancestors, read_table
from tmuxorch.adapters.tmux.server import Tmux
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.context import open_context
from tmuxorch.service.workers import creation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tmuxorch.model import ProcessId

# Agent profile, name, task; the one to look at first comes last, as it is made last.
CAST = (
    ("works", "login-redirect", "Fix the redirect after login"),
    ("asks", "port-tests", "Port the tests to pytest"),
    ("finishes", "write-guide", "Write a guide for newcomers"),
    ("crashes", "speed-up-build", "Make the build faster"),
    ("prints", "run-all-tests", "Run all tests until one fails"),
    ("listens", "talk-to-me", "Attach to this one with Enter"),
)
FILES = {
    "README.md": "# A shop\n\nThrow-away: made by `tmuxorch demo`.\n",
    "src/app.py": 'def main() -> None:\n    print("shop")\n',
    "src/login.py": "def login(request):\n    return home(request)\n\n\n",
    "Makefile": "run:\n\tpython src/app.py\n",
}
END_S = 10.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo plays; everything is below `directory`."""

    directory: str
    repo: str
    socket: str
    environ: Mapping[str, str]


@contextmanager
def stage(environ: Mapping[str, str]) -> Iterator[Stage]:
    """Make the world, and take it away again: server, processes and files."""
    directory = os.path.realpath(tempfile.mkdtemp(prefix="tmuxorch-demo-"))
    try:
        yield _build(directory, environ)
    finally:
        _take_away(directory)


def _build(directory: str, environ: Mapping[str, str]) -> Stage:
    repo = os.path.join(directory, "shop")
    own = {k: v for k, v in environ.items() if not k.startswith(("TMUXORCH_", "GIT_"))}
    for name in ("TMUX", "TMUX_PANE"):
        own.pop(name, None)
    own.update(
        TMUXORCH_STATE_DIR=os.path.join(directory, "state"),
        TMUXORCH_WORKTREES_DIR=os.path.join(directory, "worktrees"),
        TMUXORCH_CONFIG=os.path.join(os.path.dirname(__file__), "demo.toml"),
        TMUXORCH_SOCKET=os.path.join(directory, "tmux"),
    )
    for path, text in FILES.items():
        full = os.path.join(repo, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
    git.git(repo, "init", "-q", "-b", "main", ".")
    git.git(repo, "config", "user.name", "Demo")
    git.git(repo, "config", "user.email", "demo@example.org")
    git.git(repo, "add", ".")
    git.git(repo, "commit", "-q", "-m", "A shop")
    return Stage(directory, repo, own["TMUXORCH_SOCKET"], own)


def start_agents(place: Stage) -> None:
    """Make the six, one after the other."""
    ctx = open_context(place.environ, socket=place.socket)
    try:
        config = ctx.settings.of(place.repo)
        repo = git.find_repo(place.repo)
        for agent, name, task in CAST:
            creation.create(
                ctx,
                config,
                creation.Request(
                    repo=repo, cwd=place.repo, task=task, name=name, agent=agent, wait=False
                ),
            )
    finally:
        ctx.store.close()


def _take_away(directory: str) -> None:
    """End the server and everything of it, then the files; also if half of it was made."""
    tmux = Tmux(os.path.join(directory, "tmux"), timeout_s=5.0)
    with suppress(TmuxorchError):
        server = procfs.identify(int(tmux.run("display-message", "-p", "#{pid}")))
        tmux.run("kill-server")
        if server is not None:
            processes.wait_dead(server, END_S)
    deadline = time.monotonic() + END_S
    while (left := _processes_of(directory)) and time.monotonic() < deadline:
        for process in left:
            with suppress(TmuxorchError):
                processes.send_signal(process, signal.SIGKILL)
        time.sleep(0.02)
    shutil.rmtree(directory, ignore_errors=True)


def _processes_of(directory: str) -> list[ProcessId]:
    """Whoever was started with this stage's state directory, a name that nobody else has."""
    mark = os.fsencode(f"TMUXORCH_STATE_DIR={os.path.join(directory, 'state')}")
    own = {os.getpid(), *ancestors(table := read_table(), os.getpid())}
    return [
        row.id
        for row in table.values()
        if row.pid not in own and not row.ended and mark in (row.environ or b"").split(b"\0")
    ]
