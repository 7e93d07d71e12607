"""What all benchmarks share: a private world, bare floors, and rows with ratios and targets.

Measured and bare runs alternate and medians are compared, so other work on the machine
slows both alike. Everything happens in private directories and on private tmux servers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

import psutil

from tmuxorch import config as configuration
from tmuxorch import paths
from tmuxorch.adapters.git import facade as git
from tmuxorch.service.context import open_context
from tmuxorch.service.workers import creation

PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
IMPORTS = (sys.executable, "-c", "import click, sqlite3")
PYTHON = (sys.executable, "-c", "pass")
PYTHON_ALONE = (sys.executable, "-I", "-S", "-c", "pass")
AGENT = ("sleep", "1000")
DEADLINE_S = 30.0


@dataclass(frozen=True)
class Row:
    """One measurement; its target is a ratio to the floor, or an amount where none is given."""

    what: str
    measured: float
    floor: float | None
    target: float | None
    unit: str = "ms"
    is_amount: bool = False
    is_aim: bool = False

    @property
    def ratio(self) -> float | None:
        return self.measured / self.floor if self.floor else None

    @property
    def verdict(self) -> str:
        judged = self.measured if self.is_amount else self.ratio
        if self.target is None or judged is None:
            return ""
        return "ok" if judged <= self.target else "over"

    def cells(self) -> tuple[str, ...]:
        floor = "" if self.floor is None else f"{self.floor:.1f} {self.unit}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        target = "" if self.target is None else f"{'aim' if self.is_aim else '<='} {self.target:g}"
        if target and self.is_amount:
            target += f" {self.unit}"
        measured = f"{self.measured:.1f} {self.unit}".removesuffix(".0 failed")
        return (self.what, measured, floor, ratio, target, self.verdict)


class World:
    """A private machine: HOME, state, tmux server and a repository of 300 files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = str(directory / "tmux")
        self.state = str(directory / "state")
        self.numbers = count()
        environ = {
            "PATH": PATH,
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "GIT_CONFIG_NOSYSTEM": "1",
            "TMUX_TMPDIR": str(directory),
            "TMUXORCH_STATE_DIR": self.state,
            "TMUXORCH_WORKTREES_DIR": str(directory / "worktrees"),
            "TMUXORCH_CONFIG": str(directory / "config.toml"),
            "TMUXORCH_SOCKET": self.socket,
            "TMUXORCH_WATCHER": "off",
        }
        os.environ.clear()  # the adapters hand on the environment they find
        os.environ.update(environ)
        self.repo = self.make_repo("repo")
        self.bare_repo = self.make_repo("bare")
        self.tmux("new-session", "-d", "-s", "bare", *AGENT)
        self.ctx = open_context(os.environ, socket=self.socket)
        self.config = configuration.load(
            paths.config_path(os.environ), str(self.repo), trusted=lambda _: False
        )

    def make_repo(self, name: str) -> Path:
        repo = self.directory / name
        run("git", "init", "-q", str(repo))
        for n in range(300):
            path = repo / f"part{n % 20}" / f"module{n}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"# module {n}\n" + "value = 'some text to check out'\n" * 40)
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
        run("git", "-C", str(repo), "add", ".")
        run("git", "-C", str(repo), *who, "commit", "-q", "-m", "first")
        return repo

    def tmux(self, *args: str) -> str:
        return run("tmux", "-u", "-S", self.socket, *args)

    def create(self) -> None:
        """A worker, made in this process."""
        request = creation.Request(
            repo=git.find_repo(str(self.repo)), cwd=str(self.repo), command=AGENT, wait=False
        )
        creation.create(self.ctx, self.config, request)

    def bare(self) -> None:
        """The least that a worker needs: a worktree and a window."""
        n = next(self.numbers)
        path = str(self.directory / "bare-worktrees" / str(n))
        add = ("worktree", "add", "--no-track", "-b", f"bare/{n}", path, "HEAD")
        run("git", "-C", str(self.bare_repo), *add)
        self.tmux("new-window", "-d", "-t", "=bare:", "-c", path, *AGENT)

    def new(self) -> None:
        """A worker, made by the command line."""
        run("tmuxorch", "new", "--no-wait", "--", *AGENT, cwd=self.repo)

    def close(self) -> None:
        self.ctx.store.close()
        self.tmux("kill-server")
        wait_for(lambda: not self.processes(), "the end of all agents", fatal=False)
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def processes(self) -> list[psutil.Process]:
        """What was started in this world, by the environment that it handed down."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("TMUXORCH_STATE_DIR") == self.state:
                    found.append(process)
        return found


@contextmanager
def private_world() -> Iterator[World]:
    # Short: a tmux socket path has at most 107 bytes.
    world = World(Path(os.path.realpath(tempfile.mkdtemp(prefix="to-bench-", dir="/tmp"))))
    try:
        yield world
    finally:
        world.close()


def run(*argv: str, cwd: Path | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{argv}: {done.returncode}: {done.stderr}")
    return done.stdout


def wait_for(look: Callable[[], bool], what: str, *, fatal: bool = True) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not look():
        if time.monotonic() > deadline:
            if fatal:
                raise RuntimeError(f"{what} did not come within {DEADLINE_S:g} s")
            return
        time.sleep(0.02)


def took_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def medians(times: int, *works: Callable[[], object]) -> list[float]:
    """The median of each in ms; one of each in turn, after a round that does not count."""
    rounds = [[took_ms(work) for work in works] for _ in range(times + 1)]
    return [median(column) for column in zip(*rounds[1:], strict=True)]


def main(name: str, about: str | None, parts: Mapping[str, Callable[[], Iterator[Row]]]) -> int:
    """Print the rows of the parts that were asked for, or of all."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench {name}", description=about)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; or all")
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(parts):
        parser.error(f"there is no part {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that worlds are closed
    line = "{:<43} {:>10} {:>10} {:>6} {:>10}  {}"
    print(line.format("what", "measured", "floor", "ratio", "target", ""))
    missed = False
    for part in args.parts or parts:
        for row in parts[part]():
            print(line.format(*row.cells()), flush=True)
            missed |= row.verdict == "over" and not row.is_aim
    return int(args.check and missed)
