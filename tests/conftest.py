"""A private world for every test: HOME, state, worktrees and tmux server of its own.

A guard makes it an error to reach for the person's own tmux server or state directory.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import libtmux
import psutil
import pytest

from tmuxorch.adapters.store.watchfile import observe_watcher
from tmuxorch.adapters.system import procfs

DEADLINE_S = 20.0
needs_proc = pytest.mark.skipif(not procfs.LINUX, reason="only /proc tells that")
T = TypeVar("T")


def wait_for(look: Callable[[], T], *, what: str = "the condition") -> T:
    """The first truthy answer of `look`; fails after a deadline that only a bug reaches."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {DEADLINE_S:g} s")
        time.sleep(0.01)


def has_ended(pid: int) -> bool:
    """tmux leaves the root of a pane a zombie for as long as it likes."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def pytest_configure() -> None:
    """Hand on no ignored signal: nohup, and a script's `&`, would deafen all that is tried here."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            # We stay deaf to it; a program that we start is not, as a handler ends with exec.
            signal.signal(number, _hear_nothing)


def _hear_nothing(_number: int, _frame: FrameType | None) -> None:
    """What somebody had us ignore."""


def needs(program: str) -> pytest.MarkDecorator:
    """Skip a test whose program is not here, or is busybox's, which has few of the options."""
    path = os.path.realpath(shutil.which(program) or "")
    missing = not os.path.isfile(path) or os.path.basename(path) == "busybox"
    return pytest.mark.skipif(missing, reason=f"{program} is not installed")


class World:
    """One test's private machine: an environment, a repository and a tmux socket."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "home"
        self.state = directory / "state"
        self.worktrees = directory / "worktrees"
        self.socket = str(directory / "tmux")
        self.home.mkdir()
        self.environ = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "GIT_CONFIG_NOSYSTEM": "1",
            "TMUX_TMPDIR": str(directory),
            "TMUXORCH_STATE_DIR": str(self.state),
            "TMUXORCH_WORKTREES_DIR": str(self.worktrees),
            "TMUXORCH_CONFIG": str(self.home / "config.toml"),
            "TMUXORCH_SOCKET": self.socket,
            # Tests that want the health loop start it; all others want to be alone.
            "TMUXORCH_WATCHER": "off",
        }
        if "PYTHONPATH" in os.environ:  # as when /proc is hidden from all that a test runs
            self.environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Test\n\temail = test@example.org\n[init]\n\tdefaultBranch = main\n"
        )
        self.repo = self.make_repo("repo")

    def make_repo(self, name: str) -> Path:
        """A repository with one commit that holds `README` and `src/app.py`."""
        repo = self.directory / name
        (repo / "src").mkdir(parents=True)
        self.git("init", "-q", ".", cwd=repo)
        (repo / "README").write_text("hello\n")
        (repo / "src" / "app.py").write_text("print('hi')\n")
        (repo / ".gitignore").write_text("*.log\n.env\n")
        self.git("add", ".", cwd=repo)
        self.git("commit", "-q", "-m", "first", cwd=repo)
        return repo

    def git(self, *args: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.repo,
            env=self.environ,
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout

    def run(
        self,
        *args: str,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stdin: str | bytes | None = None,
        ok: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run the installed `tmuxorch` as a person would; with `ok` it must succeed."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            ["tmuxorch", *args],
            cwd=cwd or self.repo,
            env={**self.environ, **(env or {})},
            input=data,
            stdin=subprocess.DEVNULL if data is None else None,
            capture_output=True,
            check=False,
            timeout=90,
        )
        text = subprocess.CompletedProcess(
            done.args, done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr)
        )
        if ok:
            assert text.returncode == 0, f"tmuxorch {args}: {text.stderr}"
        return text

    @contextmanager
    def watching(self, *args: str) -> Iterator[subprocess.Popen[bytes]]:
        """A watcher of this world, leading from the start of the block to its end."""
        log = self.directory / "watch.log"
        with log.open("wb") as out:
            watcher = subprocess.Popen(
                ["tmuxorch", "watch", *args],
                cwd="/",
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            state = str(self.state)
            wait_for(lambda: observe_watcher(state).pid == watcher.pid, what="leadership")
            yield watcher
        finally:
            watcher.kill()
            watcher.wait()
            print(log.read_text())  # shown when the test fails
        assert "a pass failed" not in log.read_text()

    def json(self, *args: str, **kwargs: Any) -> Any:
        return json.loads(self.run(*args, "--json", **kwargs).stdout)

    def new(self, *args: str, **kwargs: Any) -> dict[str, Any]:
        """Make a worker; its JSON object."""
        made: dict[str, Any] = json.loads(self.run("new", "--json", *args, **kwargs).stdout)
        return made

    @property
    def server(self) -> libtmux.Server:
        """The same tmux server through somebody else's eyes."""
        return libtmux.Server(socket_path=self.socket)

    def tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, *args],
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def screen(self, pane: str) -> str:
        return self.tmux("capture-pane", "-p", "-t", pane)

    def marked_panes(self) -> list[str]:
        """Agent ids of all marked panes; empty without a server."""
        done = subprocess.run(
            ["tmux", "-S", self.socket, "list-panes", "-a", "-F", "#{@tmuxorch_id}"],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        return [line for line in done.stdout.splitlines() if line]

    def processes(self, agent_id: str) -> list[psutil.Process]:
        """Living processes that carry the agent's marker."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("TMUXORCH_AGENT_ID") == agent_id:
                    found.append(process)
        return found

    def linked_worktrees(self, repo: Path | None = None) -> list[str]:
        lines = self.git("worktree", "list", "--porcelain", cwd=repo).splitlines()
        paths = [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]
        return paths[1:]

    def branches(self, repo: Path | None = None) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads", cwd=repo).split()

    def assert_nothing_left(self) -> None:
        """No window, process, worktree, branch or run file of any agent."""
        assert self.marked_panes() == []
        assert self.linked_worktrees() == []
        assert [b for b in self.branches() if b.startswith("tmuxorch/")] == []
        runs = self.state / "run"
        assert not runs.exists() or list(runs.iterdir()) == []
        # What was moved to the trash is deleted in the background.
        wait_for(lambda: not self.files_in_worktrees(), what="the end of all worktrees' files")
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                env = process.environ()
                ours = env.get("TMUXORCH_STATE_DIR") == str(self.state)
                assert not (ours and "TMUXORCH_AGENT_ID" in env), process

    def files_in_worktrees(self) -> list[str]:
        return [f"{top}/{name}" for top, _, names in os.walk(self.worktrees) for name in names]

    def close(self) -> None:
        """End the private server and everything that was started in this world."""
        with suppress(subprocess.CalledProcessError):
            pid = int(self.tmux("display-message", "-p", "#{pid}"))
            self.tmux("kill-server")
            with suppress(psutil.Error):
                psutil.Process(pid).wait(10)
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("TMUXORCH_STATE_DIR") == str(self.state):
                    process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture
def world() -> Iterator[World]:
    # Short: a tmux socket path has at most 107 bytes.
    world = World(Path(os.path.realpath(tempfile.mkdtemp(prefix="to-"))))
    yield world
    world.close()


@pytest.fixture(autouse=True)
def _guard(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """In-process code that forgets its private world ends up nowhere, and fails there."""
    nowhere = tmp_path_factory.getbasetemp() / "nowhere"
    for name in ("TMUX", "TMUX_PANE", "TMUXORCH_AGENT_ID", "TMUXORCH_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(nowhere))
    monkeypatch.setenv("TMUX_TMPDIR", str(nowhere))
    for name in ("STATE_DIR", "WORKTREES_DIR", "CONFIG", "SOCKET"):
        monkeypatch.setenv(f"TMUXORCH_{name}", str(nowhere / name.lower()))
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
