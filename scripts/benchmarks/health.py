"""How soon a death is on record, and what watching costs, beside bare tmux in the same run.

What others do, as published or measured: relay notices after 10 s (2 s once it looks again),
midtown after 10 s, hcom after 10 ms but 1.7 s when its wrapper is killed; multiclaude and
claude-squad never notice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median, quantiles

import psutil
from measuring import Row, World, main, medians, private_world, run, wait_for

from tmuxorch.adapters.store.watchfile import observe_watcher
from tmuxorch.model import Agent, State
from tmuxorch.service.context import open_context
from tmuxorch.service.health.loop import Health

KILLS = 200
SHIM_KILLS = 50
SLOW_KILLS = 10
CROWD = 300
MANY = 500


@contextmanager
def watching(world: World, *args: str) -> Iterator[psutil.Process]:
    """A watcher that keeps the dead, so that only seeing them is measured."""
    (world.directory / "config.toml").write_text("[cleanup]\ndead = 'never'\n")
    process = subprocess.Popen(["tmuxorch", "watch", *args], stdout=subprocess.DEVNULL)
    wait_for(lambda: observe_watcher(world.state).pid == process.pid, "the watcher")
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


def deaths_ms(world: World, count: int, victim: Callable[[Agent], int]) -> list[float]:
    """From each kill to its record, as another program sees it."""
    found = []
    while len(found) < count:
        batch = min(10, count - len(found))
        for _ in range(batch):
            world.create()
        time.sleep(1.2)  # until every one of them has been looked at once
        for agent in world.ctx.store.agents():
            if agent.state is not State.RUNNING:
                continue
            start = time.perf_counter()
            os.kill(victim(agent), signal.SIGKILL)
            while running(world, agent):
                time.sleep(0.0002)
            found.append((time.perf_counter() - start) * 1000)
    return found


def running(world: World, agent: Agent) -> bool:
    now = world.ctx.store.agent(agent.task.id)
    return now is not None and now.state is State.RUNNING


def shim_of(agent: Agent) -> int:
    assert agent.run.shim is not None
    return agent.run.shim.pid


def agent_of(agent: Agent) -> int:
    assert agent.run.process is not None
    return agent.run.process.pid


def death_rows() -> Iterator[Row]:
    """A kill -9 of the agent, of its shim, and of the agent with all events off."""
    with private_world() as world, watching(world):
        times = deaths_ms(world, KILLS, agent_of)
        yield Row("kill -9 agent to record, p50", median(times), None, 20, is_amount=True)
        yield Row("  p99", quantiles(times, n=100)[98], None, 100, is_amount=True)
        times = deaths_ms(world, SHIM_KILLS, shim_of)
        yield Row("kill -9 shim to record, p50", median(times), None, 20, is_amount=True)
        yield Row("  p99", quantiles(times, n=100)[98], None, 100, is_amount=True)
    with private_world() as world, watching(world, "--no-events"):
        times = deaths_ms(world, SLOW_KILLS, agent_of)
        yield Row("  with all events off, slowest", max(times), None, 2000, is_amount=True)


def pass_rows() -> Iterator[Row]:
    """One pass over a crowd beside one bare look at its windows, and how it grows."""
    with private_world() as world:
        per_agent = []
        for size in (10, CROWD, MANY):
            while len(world.ctx.store.agents()) < size:
                world.create()
            health = health_of(world)
            look, bare = medians(20, health.look, lambda: run_panes(world))
            health.close()
            per_agent.append(look / size)
            yield Row(f"a pass, {size} agents / bare list-panes", look, bare, 2.0)
        yield Row("a pass, per agent: 500 / 10", per_agent[2], per_agent[0], 1.5)


def run_panes(world: World) -> str:
    return run("tmux", "-u", "-S", world.socket, "list-panes", "-a")


def health_of(world: World) -> Health:
    def opened() -> object:
        return open_context(os.environ, socket=world.socket)

    return Health(
        world.ctx,
        lambda: world.config,
        open_context=opened,  # type: ignore[arg-type]
        tell=lambda _: None,
    )


def idle_rows() -> Iterator[Row]:
    """What a watcher takes while a hundred agents are quiet."""
    with private_world() as world:
        for _ in range(100):
            world.create()
        with watching(world) as watcher:
            time.sleep(3.0)
            before, start = sum(watcher.cpu_times()[:4]), time.perf_counter()
            time.sleep(15.0)
            share = (sum(watcher.cpu_times()[:4]) - before) / (time.perf_counter() - start) * 100
            resident = watcher.memory_info().rss / 1024 / 1024
        yield Row("idle watcher, 100 agents: of a core", share, None, 2, "%", is_amount=True)
        yield Row("idle watcher, 100 agents: resident", resident, None, 60, "MB", is_amount=True)


PARTS = {"deaths": death_rows, "passes": pass_rows, "idle": idle_rows}


if __name__ == "__main__":
    status = main("health", __doc__, PARTS)
    print("\n" + (__doc__ or "").split("\n\n")[1].strip())
    sys.exit(status)
