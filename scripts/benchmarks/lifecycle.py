"""What a worker's life costs, each time beside what the bare tools take for the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from measuring import (
    DEADLINE_S,
    IMPORTS,
    PYTHON,
    PYTHON_ALONE,
    Row,
    World,
    main,
    medians,
    private_world,
    run,
    took_ms,
)

from tmuxorch import shim
from tmuxorch.adapters.store import rundir


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


if __name__ == "__main__":
    sys.exit(main("lifecycle", __doc__, PARTS))
