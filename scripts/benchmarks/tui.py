"""What the screen costs, in a terminal of its own, beside a bare Textual app with one label.

Everything happens in private directories and on private tmux servers.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from statistics import median

import psutil
from measuring import Row, World, main, private_world, run

from tmuxorch.adapters.store import records
from tmuxorch.adapters.store.rows import agent_of
from tmuxorch.adapters.system import procfs
from tmuxorch.model import Agent, AgentId, Kind, ProcessId, State, Status

SIZE = (160, 45)
BARE = (
    "from textual.app import App\n"
    "from textual.widgets import Label\n"
    "class Bare(App):\n"
    "    def compose(self):\n"
    "        yield Label('first-frame')\n"
    "Bare().run()\n"
)


class Terminal:
    """A program in a terminal that can be typed into and read."""

    def __init__(self, argv: Sequence[str], cwd: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvp(argv[0], list(argv))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))

    def read(self, timeout_s: float) -> bytes:
        if not select.select([self.fd], [], [], timeout_s)[0]:
            return b""
        try:
            return os.read(self.fd, 1 << 16)
        except OSError:
            return b""

    def wait_for(self, text: bytes, timeout_s: float = 30.0) -> float:
        """Read on until the text comes; how long that took, in ms."""
        start, seen = time.perf_counter(), b""
        while text not in seen:
            if time.perf_counter() - start > timeout_s:
                raise RuntimeError(f"{text!r} did not come within {timeout_s:g} s: {seen[-500:]!r}")
            seen = seen[-4096:] + self.read(1.0)
        return (time.perf_counter() - start) * 1000

    def settle(self, quiet_s: float = 0.3) -> None:
        while self.read(quiet_s):
            pass

    def drain(self, seconds: float) -> None:
        """Read for so long, as a terminal does."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def write(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@contextmanager
def opened(*argv: str, cwd: str = "/") -> Iterator[Terminal]:
    terminal = Terminal(argv, cwd)
    try:
        yield terminal
    finally:
        terminal.close()


def record(world: World, count: int, process: ProcessId | None = None) -> list[Agent]:
    """Agents that are only records, all with this process unless another is given."""
    os.environ["TMUXORCH_WATCHER"] = "off"
    opened_store = records.open_store(world.state)
    made = []
    for n in range(count):
        number = next(world.numbers)
        agent = agent_of(
            id=AgentId(f"{number:012x}"), name=f"agent-{number:03}", repo=str(world.repo),
            task="a task", agent="demo", kind=Kind.WORKER, state=State.RUNNING,
            status=Status.WORKING, branch=f"tmuxorch/{number}", branch_made=True, base="main",
            base_commit="0" * 40, worktree=f"{world.directory}/none/{number}", command=("sleep",),
            socket=world.socket, process=process or procfs.identify_self(), created_at=1.0 + n,
        )  # fmt: skip
        opened_store.add(agent)
        made.append(agent)
    opened_store.close()
    return made


def paint_rows() -> Iterator[Row]:
    """From the command to the first frame."""
    with private_world() as world:
        record(world, 20)
        ours, bare = [], []
        for _ in range(12):
            with opened("tmuxorch", cwd=str(world.repo)) as terminal:
                ours.append(terminal.wait_for(b"help"))
            with opened(sys.executable, "-c", BARE) as terminal:
                bare.append(terminal.wait_for(b"first-frame"))
        yield Row("first paint / bare Textual app", median(ours[2:]), median(bare[2:]), 1.3)


def death_rows() -> Iterator[Row]:
    """From kill -9 to the changed row, among 100 agents."""
    with private_world() as world:
        sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in range(40)]
        for sleeper in sleepers:
            record(world, 1, procfs.identify(sleeper.pid))
        record(world, 60)
        took = []
        with opened("tmuxorch", cwd=str(world.repo)) as terminal:
            terminal.wait_for(b"agent-039")
            terminal.settle()
            for sleeper in sleepers:
                sleeper.kill()
                took.append(terminal.wait_for(b"ended"))
                terminal.settle(0.6)
        for sleeper in sleepers:
            sleeper.wait()
        yield Row("kill -9 -> row, p99 (100 agents)", p99(took), None, 200, is_amount=True)


def key_rows() -> Iterator[Row]:
    """From a key to the first of what it paints, among 300 agents."""
    with private_world() as world:
        record(world, 300)
        took = []
        with opened("tmuxorch", cwd=str(world.repo)) as terminal:
            terminal.wait_for(b"agent-010")
            terminal.settle()
            for n in range(200):
                start = time.perf_counter()
                terminal.write(b"j" if n % 40 < 30 else b"k")
                while not terminal.read(1.0):
                    pass
                took.append((time.perf_counter() - start) * 1000)
                terminal.settle(0.02)
        yield Row("key -> paint, p99 (300 agents)", p99(took), None, 50, is_amount=True)


def load_rows() -> Iterator[Row]:
    """Processor time as a share of one core."""
    with private_world() as world:
        record(world, 100)
        yield Row("100 quiet agents", share(world), None, 3, "%", is_amount=True)
    with private_world() as world:
        for _ in range(20):
            loop = "n=0; while :; do n=$((n+1)); echo line $n of many; done"
            run("tmuxorch", "new", "--no-wait", "--", "sh", "-c", loop, cwd=world.repo)
        yield Row("20 agents that print at full speed", share(world), None, 15, "%", is_amount=True)


def share(world: World, seconds: float = 15.0) -> float:
    with opened("tmuxorch", cwd=str(world.repo)) as terminal:
        terminal.wait_for(b"working")
        terminal.drain(8.0)
        process = psutil.Process(terminal.pid)
        before, start = process.cpu_times(), time.monotonic()
        terminal.drain(seconds)
        after, wall_s = process.cpu_times(), time.monotonic() - start
    return (after.user + after.system - before.user - before.system) / wall_s * 100


def memory_rows() -> Iterator[Row]:
    """What an hour of use leaves: 3600 changes in the store and as many keys."""
    with private_world() as world:
        agents = record(world, 50)
        opened_store = records.open_store(world.state)
        sizes = []
        with opened("tmuxorch", cwd=str(world.repo)) as terminal:
            terminal.wait_for(b"working")
            process = psutil.Process(terminal.pid)
            for n in range(3600):
                status = (Status.WORKING, Status.WAITING, Status.IDLE)[n % 3]
                agent = agents[n % len(agents)]
                opened_store.swap(agent, expect=[State.RUNNING], status=status)
                terminal.write((b"j", b"j", b"k", b"\t", b"w")[n % 5])
                terminal.drain(0.005)
                if n in (1200, 3599):
                    terminal.settle(0.2)
                    sizes.append(process.memory_info().rss / 1e6)
        opened_store.close()
        yield Row("memory after an hour's use / a third of it", sizes[1], sizes[0], 1.05, "MB")


def p99(took: list[float]) -> float:
    return sorted(took)[min(len(took) - 1, int(len(took) * 0.99))]


PARTS = {
    "paint": paint_rows,
    "death": death_rows,
    "key": key_rows,
    "load": load_rows,
    "memory": memory_rows,
}


if __name__ == "__main__":
    sys.exit(main("tui", __doc__, PARTS))
