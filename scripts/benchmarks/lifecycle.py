"""What a worker's life costs, each time beside what the bare tools take for the same.

Measured and bare runs alternate and medians are compared, so other work on the machine
slows both alike. Everything happens in private directories and on private tmux servers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

import psutil

from tmuxorch import config as configuration
from tmuxorch import paths, shim
from tmuxorch.adapters import git, rundir
from tmuxorch.service import creation
from tmuxorch.service.context import open_context

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


def creation_rows() -> Iterator[Row]:
    """One worker more, in a warm process and by the command line."""
    with private_world() as world:
        create, bare = medians(20, world.create, world.bare)
        yield Row("create, in-process / git + tmux", create, bare, 1.5)
        new, bare, imports = medians(20, world.new, world.bare, lambda: run(*IMPORTS))
        yield Row("tmuxorch new / git + tmux + 3 imports", new, bare + 3 * imports, 1.0)


def crowd_rows() -> Iterator[Row]:
    """A hundred workers by 16 commands at once, and the list of them."""
    with private_world() as world:
        world.new()  # the store and the server are there before the crowd comes
        start = time.perf_counter()
        failed = at_once(100, world.new)
        wall_s = time.perf_counter() - start
        start = time.perf_counter()
        at_once(100, world.bare)
        bare_s = time.perf_counter() - start
        listed = json.loads(run("tmuxorch", "ls", "--json", cwd=world.repo))
        failed = max(failed, 101 - sum(row["process"]["alive"] is True for row in listed))
        works = (("tmuxorch", "ls", "--json"), IMPORTS, PYTHON)
        ls, imports, python = medians(
            20, *(lambda argv=argv: run(*argv, cwd=world.repo) for argv in works)
        )
        yield Row("ls --json, 100 workers / imports", ls, imports, 1.5)
        yield Row("ls --json, 100 workers / python", ls, python, 2.5, is_aim=True)
        yield Row("100 workers, 16 at once: failures", failed, None, 0, "failed", is_amount=True)
        yield Row("100 workers, 16 at once / git + tmux", wall_s, bare_s, None, "s")


def at_once(times: int, work: Callable[[], object]) -> int:
    """Do it that often, 16 at a time; returns how often it failed."""
    with ThreadPoolExecutor(16) as pool:
        errors = [done.exception() for done in [pool.submit(work) for _ in range(times)]]
    failures = [error for error in errors if error is not None]
    for error in failures[:3]:
        print(error, file=sys.stderr)
    return len(failures)


def growth_rows() -> Iterator[Row]:
    """The two hundredth worker beside the first."""
    with private_world() as world:
        costs = [took_ms(world.create) for _ in range(200)]
        yield Row("create, workers 191-200 / 1-10", median(costs[190:]), median(costs[:10]), 1.5)


def shim_rows() -> Iterator[Row]:
    """From the shim's start to the agent's, and what a shim that holds its window takes."""
    with private_world() as world:
        start, bare = medians(
            20, lambda: start_shim(world), lambda: subprocess.run(PYTHON_ALONE, check=True)
        )
        yield Row("shim, until the agent runs / python -I -S", start, bare, 2.0)
        held = [resident_mb(world, shim.command(held_run_dir(world))) for _ in range(5)]
        bare_argv = (*PYTHON_ALONE[:-1], "import time; time.sleep(1000)")
        plain = [resident_mb(world, bare_argv) for _ in range(5)]
        yield Row(
            "shim that holds, resident", median(held), median(plain), 12, "MB", is_amount=True
        )


def start_shim(world: World) -> None:
    """Run a shim until it says that its agent runs; its end is not waited for.

    In a session of its own: else it would take the terminal this runs in.
    """
    directory = prepare(world, shutil.which("sleep") or "/bin/sleep", "1000")
    with rundir.listening(directory) as fifo:
        process = subprocess.Popen(shim.command(directory), start_new_session=True)
        rundir.wait_poke(fifo, DEADLINE_S)
    assert rundir.read_started(directory) is not None
    process.terminate()


def prepare(world: World, *argv: str) -> str:
    directory = str(world.directory / f"shim-{next(world.numbers)}" / "run")
    env = dict(os.environ)
    rundir.prepare(directory, argv=argv, env=env, cwd="/", task="", stdin=None, grace_s=2.0)
    return directory


def held_run_dir(world: World) -> str:
    return prepare(world, shutil.which("true") or "/bin/true")


def resident_mb(world: World, argv: Sequence[str]) -> float:
    """What a process in a window of its own takes after two seconds, when it has settled."""
    pid = world.tmux("new-window", "-d", "-P", "-F", "#{pane_pid}", "-t", "=bare:", *argv)
    time.sleep(2.0)
    lines = Path(f"/proc/{pid.strip()}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


PARTS = {
    "create": creation_rows,
    "crowd": crowd_rows,
    "growth": growth_rows,
    "shim": shim_rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench lifecycle", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; or all")
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that worlds are closed
    line = "{:<43} {:>10} {:>10} {:>6} {:>8}  {}"
    print(line.format("what", "measured", "floor", "ratio", "target", ""))
    missed = False
    for part in args.parts or PARTS:
        for row in PARTS[part]():
            print(line.format(*row.cells()), flush=True)
            missed |= row.verdict == "over" and not row.is_aim
    return int(args.check and missed)


if __name__ == "__main__":
    sys.exit(main())
