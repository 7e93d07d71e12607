"""The health loop in this process: with a clock of our own, and looked at between its passes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.conftest import World, has_ended, wait_for
from tmuxorch.core.observation import Unknown
from tmuxorch.errors import CannotSave
from tmuxorch.model import AgentId, State, Status
from tmuxorch.service.context import Context, open_context
from tmuxorch.service.health.loop import GRACE_S, Deed, Health
from tmuxorch.service.health.panes import Answer, Servers
from tmuxorch.service.removal import removal

SLEEP = ("--", "sleep", "1000")


class Clock:
    """The wall clock, until somebody sets it."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


@contextmanager
def health_of(
    world: World, *, clock: Callable[[], float] = time.time
) -> Iterator[tuple[Health, Context, list[Deed]]]:
    told: list[Deed] = []

    def opened() -> Context:
        ctx = open_context(world.environ, socket=world.socket)
        ctx.clock = clock
        return ctx

    ctx = opened()
    health = Health(ctx, open_context=opened, tell=told.append, on_bug=raise_bug)
    try:
        yield health, ctx, told
    finally:
        wait_for(lambda: not health.is_busy(), what="the hands to rest")
        health.close()
        ctx.store.close()


def raise_bug(bug: BaseException) -> None:
    raise bug


def settle(health: Health) -> None:
    """Passes until nothing more is to be done."""
    wait_for(lambda: not health.look() and not health.is_busy() and not health.unsure)


def kill(worker: dict[str, Any]) -> None:
    process = psutil.Process(worker["process"]["pid"])
    process.kill()
    wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


def test_an_agent_that_is_silent_for_ten_seconds_is_idle(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    clock = Clock()
    with health_of(world, clock=clock) as (health, ctx, told):
        health.look()
        assert status_of(ctx, made) is Status.WORKING
        clock.ahead_s = 4.0
        health.look()
        clock.ahead_s = 8.0
        health.look()
        clock.ahead_s = 12.0
        health.look()
        assert status_of(ctx, made) is Status.IDLE
        assert told == []


def status_of(ctx: Context, worker: dict[str, Any]) -> Status:
    agent = ctx.store.agent(worker["id"])
    assert agent is not None
    return agent.status


def test_after_the_clock_was_set_nothing_is_judged_for_a_moment(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    clock = Clock()
    with health_of(world, clock=clock) as (health, _, told):
        health.look()
        clock.ahead_s = 3600.0
        kill(made)
        assert health.look() == 0
        assert told == []
        assert health.soon_s < GRACE_S
        wait_for(lambda: health.look() > 0)
        assert [deed.what for deed in told] == ["ended"]
        settle(health)


def test_a_silent_agent_stays_idle_when_the_clock_is_set_back(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    clock = Clock()
    clock.ahead_s = 20.0
    with health_of(world, clock=clock) as (health, ctx, _):
        health.look()
        assert status_of(ctx, made) is Status.IDLE
        clock.ahead_s = -3600.0
        wait_for(lambda: health.look() >= 0 and health.soon_s > GRACE_S / 4)
        assert status_of(ctx, made) is Status.IDLE


def test_a_look_at_others_forgets_nothing_about_an_ended_worker(world: World) -> None:
    (world.home / "config.toml").write_text("[cleanup]\ndead = 'clean'\n")
    made = world.new("-n", "a", *SLEEP)
    with health_of(world) as (health, ctx, told):
        kill(made)
        wait_for(lambda: health.look() > 0)
        wait_for(lambda: not health.look(only=set()) and not health.is_busy())
        settle(health)
        assert told[-1].what == "removed"
        assert ctx.store.agents() == []


def test_what_was_at_stake_at_an_earlier_end_does_not_count_for_this_one(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    with health_of(world) as (health, ctx, _):
        kill(made)
        wait_for(lambda: health.look() > 0)
        health.look()
        # Started again and dead again, now with work, before anybody looked.
        wait_for(lambda: not health.is_busy())
        world.run("restart", "a")
        (Path(made["worktree"]) / "work").write_text("x")
        [again] = world.json("ls")
        kill(again)
        wait_for(lambda: health.look() >= 0 and status_of(ctx, made) is Status.CRASHED)
        settle(health)
        assert [agent.state for agent in ctx.store.agents()] == [State.EXITED]


def test_a_removal_that_failed_is_tried_again_later(world: World, monkeypatch: Any) -> None:
    made = world.new("-n", "a", *SLEEP)
    real, tries = removal.remove, []

    def refuses(ctx: Context, agent: Any, **kwargs: Any) -> Any:
        tries.append(agent.task.id)
        if len(tries) == 1:
            removal._claim(ctx, agent, kwargs["reason"], False)
            raise CannotSave("the disk is full")
        return real(ctx, agent, **kwargs)

    monkeypatch.setattr(removal, "remove", refuses)
    with health_of(world) as (health, ctx, told):
        kill(made)
        settle(health)
        assert "could not remove" in [deed.what for deed in told]
        assert [a.state for a in ctx.store.agents()] == [State.REMOVING]
        wait_for(lambda: health.look() >= 0 and not ctx.store.agents())
        assert len(tries) == 2
    assert [e["reason"] for e in world.json("history")] == ["crashed"]


def test_a_tmux_server_that_does_not_answer_keeps_nobody_elses_death_from_being_seen(
    world: World,
) -> None:
    stuck = world.new("-n", "stuck", *SLEEP)
    other = {**world.environ, "TMUXORCH_SOCKET": str(world.directory / "other")}
    free = world.new("-n", "free", *SLEEP, env=other)
    (Path(free["worktree"]) / "work").write_text("x")
    servers = [psutil.Process(w["process"]["shim_pid"]).parent() for w in (stuck, free)]
    assert servers[0] is not None
    assert servers[1] is not None
    try:
        with health_of(world) as (health, ctx, told):
            health.look()
            servers[0].send_signal(signal.SIGSTOP)
            kill(free)
            wait_for(lambda: health.look() >= 0 and status_of(ctx, free) is Status.CRASHED)
            assert status_of(ctx, stuck) is Status.UNKNOWN
            servers[0].send_signal(signal.SIGCONT)
            wait_for(lambda: health.look() >= 0 and status_of(ctx, stuck) is Status.WORKING)
            assert [a.state for a in ctx.store.agents()] == [State.RUNNING, State.EXITED]
            assert "removed" not in [deed.what for deed in told]
    finally:
        servers[0].send_signal(signal.SIGCONT)
        servers[1].kill()
        servers[1].wait(10)


def test_a_question_on_the_screen_is_waiting_until_the_agent_says_otherwise(world: World) -> None:
    (world.home / "config.toml").write_text(
        "[agents.asker]\ncommand = ['sh', '-c', 'echo \"Shall I? (y/n)\"; exec sleep 1000']\n"
        "waiting = 'Shall I'\n"
    )
    made = world.new("-n", "a", "-a", "asker")
    with health_of(world) as (health, ctx, told):
        wait_for(lambda: health.look() == 0 and status_of(ctx, made) is Status.WAITING)
        assert [deed.what for deed in told] == ["seen waiting"]
        world.run("report", "working", env={"TMUXORCH_AGENT_ID": made["id"]})
        health.look()
        assert status_of(ctx, made) is Status.WORKING


class LastAnswer(Servers):
    """The answers of a server that is killed right after it has given one."""

    def __init__(self, server: psutil.Process, agent: psutil.Process) -> None:
        super().__init__()
        self.dying = [server, agent]

    def ask(self, socket: str, only: Collection[AgentId] = ()) -> Answer | Unknown:
        answer = super().ask(socket, only)
        if self.dying:
            server, agent = self.dying
            self.dying = []
            server.kill()
            wait_for(lambda: has_ended(agent.pid))
        return answer


def test_an_agent_that_dies_with_its_server_is_lost_whenever_the_server_was_asked(
    world: World,
) -> None:
    made = world.new("-n", "a", *SLEEP)
    server = psutil.Process(int(world.tmux("display-message", "-p", "#{pid}")))
    with health_of(world) as (health, ctx, told):
        health.servers = health._observer.servers = LastAnswer(
            server, psutil.Process(made["process"]["pid"])
        )
        wait_for(lambda: health.look() and told)
        settle(health)
        assert [deed.what for deed in told] == ["lost"]
        assert [a.state for a in ctx.store.agents()] == [State.LOST]


def test_a_respawned_shim_is_heard_before_its_agent_is_called_dead(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    run = world.state / "run" / made["id"]
    (run / "launch").rename(run / "later")
    os.mkfifo(run / "launch", 0o600)  # the new shim waits here before it starts the agent
    with health_of(world) as (health, ctx, told):
        world.tmux("respawn-pane", "-k", "-t", made["tmux"]["pane"])
        wait_for(lambda: has_ended(made["process"]["pid"]))
        for _ in range(3):
            health.look()
        assert [deed.what for deed in told] == []
        with open(run / "launch", "wb") as pipe:
            pipe.write((run / "later").read_bytes())
        wait_for(lambda: health.look() >= 0 and told)
        assert [deed.what for deed in told] == ["adopted"]
        [agent] = ctx.store.agents()
        assert agent.state is State.RUNNING
