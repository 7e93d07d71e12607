"""Starting an agent's program in a window of its own, and hearing that it runs."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from tmuxorch import shim
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system.machine import is_outside
from tmuxorch.core import naming, view
from tmuxorch.errors import StartFailed, TmuxFailed, TmuxNoServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tmuxorch.core.observation import Ended, Started
    from tmuxorch.model import Agent, Place
    from tmuxorch.service.context import Context

START_TIMEOUT_S = 30.0
SETTLE_S = 0.3
LAST_LINES = 15


def find_command(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command with its program as an absolute path, or `StartFailed`.

    The tmux server's PATH is not the person's, so the look-up happens here. A path with a
    slash is left alone: it is meant in the worktree.
    """
    program = argv[0]
    if "/" in program:
        return tuple(argv)
    found = shutil.which(program, path=environ.get("PATH"))
    if found is None:
        raise StartFailed(
            f"{program!r} is not installed or not on PATH; install it, or choose another agent "
            "with -a or a command after --"
        )
    return (found, *argv[1:])


def open_window(
    ctx: Context,
    agent: Agent,
    *,
    argv: Sequence[str],
    env: Mapping[str, str],
    stdin_task: bool,
    grace_s: float,
) -> Place:
    """Write the launch file and open the marked window that runs it."""
    if is_outside(agent.run.socket):
        raise StartFailed(
            f"the tmux server on {agent.run.socket} runs in another pid namespace (container), so "
            f"{agent.task.name} could not be seen from here; run tmuxorch there, or name another "
            "server with -S"
        )
    directory = ctx.run_dir(agent.task.id)
    rundir.prepare(
        directory,
        argv=argv,
        env=_environment(ctx, agent, env),
        cwd=agent.task.worktree,
        task=agent.task.text,
        stdin=rundir.task_file(directory) if stdin_task else None,
        grace_s=grace_s,
        run=agent.run.number,
    )
    return ctx.tmux(agent.run.socket).create_window(
        agent.task.id,
        session=naming.session_name(agent.task.repo),
        name=naming.window_name(agent.task.name),
        cwd=agent.task.worktree,
        argv=shim.command(directory),
    )


def wait_started(ctx: Context, agent: Agent, fifo: int) -> Started:
    """Wait for the shim's word; `StartFailed` with the reason if the program cannot run."""
    directory = ctx.run_dir(agent.task.id)
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        started = rundir.read_started(directory, run=agent.run.number)
        if started is not None:
            return started
        ended = rundir.read_exit(directory, run=agent.run.number)
        if ended is not None:
            raise StartFailed(
                f"{agent.task.name} could not start: {_said(ended)}; nothing was left"
            )
        if (
            not rundir.wait_poke(fifo, 1.0)
            and ctx.tmux(agent.run.socket).find_pane(agent.task.id) is None
        ):
            break
    raise StartFailed(
        f"{agent.task.name} did not start: its window went away before its program ran; "
        "look whether a tmux hook closes new windows"
    )


def wait_settled(ctx: Context, agent: Agent, fifo: int) -> Ended | None:
    """Watch the program's first moments; how it ended, if it did."""
    directory = ctx.run_dir(agent.task.id)
    deadline = time.monotonic() + SETTLE_S
    while True:
        ended = rundir.read_exit(directory, run=agent.run.number)
        left = deadline - time.monotonic()
        if ended is not None or left <= 0:
            return ended
        rundir.wait_poke(fifo, left)


def last_lines(ctx: Context, agent: Agent) -> str:
    """The last lines of the agent's screen, once they have stopped changing.

    A program's end is known before tmux has read all it printed.
    """
    tmux = ctx.tmux(agent.run.socket)
    seen, deadline = None, time.monotonic() + 1.0
    while time.monotonic() < deadline:
        try:
            pane = tmux.find_pane(agent.task.id)
            text = "" if pane is None else tmux.capture(pane.place.pane, lines=LAST_LINES)
        except (TmuxFailed, TmuxNoServer):
            break
        if text == seen:
            break
        seen = text
        time.sleep(0.03)
    lines = [line.rstrip() for line in (seen or "").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines[-LAST_LINES:])


def _said(ended: Ended) -> str:
    return ended.error or view.describe_exit(ended.exit)


def _environment(ctx: Context, agent: Agent, extra: Mapping[str, str]) -> dict[str, str]:
    env = {k: v for k, v in ctx.environ.items() if k not in ("TMUX", "TMUX_PANE")}
    env.update(extra)
    env.update(
        TMUXORCH_AGENT_ID=agent.task.id,
        TMUXORCH_NAME=agent.task.name,
        TMUXORCH_TASK_FILE=rundir.task_file(ctx.run_dir(agent.task.id)),
        TMUXORCH_SOCKET=agent.run.socket,
    )
    return env
