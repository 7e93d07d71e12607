"""A worker's days: stop it, start it again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tmuxorch import config as configuration
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system import procfs
from tmuxorch.config.profiles import TaskBy
from tmuxorch.core import view
from tmuxorch.core.observation import Ended
from tmuxorch.core.restart import carry_flags
from tmuxorch.errors import NotRunning, StartFailed, StateConflict
from tmuxorch.model import EventKind, State, Status
from tmuxorch.service.health import liveness
from tmuxorch.service.removal import removal
from tmuxorch.service.workers import launch
from tmuxorch.service.workers.visibility import refuse_unseen

if TYPE_CHECKING:
    from tmuxorch.config import Config
    from tmuxorch.config.profiles import Profile
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context


def stop(ctx: Context, agent: Agent, *, grace_s: float) -> Agent:
    """End the agent's processes and window; worktree, branch and row stay."""
    if agent.state is not State.RUNNING:
        raise NotRunning(
            f"{agent.task.name} is not running (it is {agent.state}); nothing was done"
        )
    removal.refuse_from_inside(agent)
    refuse_unseen(ctx, agent)
    removal.save_screen(ctx, agent)
    # Marked before it is ended, so that nobody takes the end for a crash.
    agent = ctx.store.swap(
        agent, expect=[State.RUNNING], what=EventKind.STOPPING, why="a person asked", stopped=True
    )
    removal.end(ctx, agent, grace_s)
    ended = liveness.read_exit(ctx.state_dir, agent)
    return ctx.store.swap(
        agent,
        expect=[State.RUNNING, State.EXITED],
        what=EventKind.STOPPED,
        why="its processes have ended and its window is closed",
        state=State.EXITED,
        status=Status.STOPPED,
        exit=view.exit_of(ended),
        ended_at=ended.at if isinstance(ended, Ended) else ctx.clock(),
        place=None,
    )


def restart(ctx: Context, config: Config, agent: Agent, *, fresh: bool) -> Agent:
    """Start the agent again in its worktree, resuming its conversation where it can.

    It gets the environment it was first started with. A start that fails leaves the agent as it
    was before, a lost one lost, and its conversation to be resumed unless the program itself
    says that there is none.
    """
    if agent.state is State.RUNNING:
        agent = stop(ctx, agent, grace_s=config.cleanup.grace_s)
    if agent.state not in (State.EXITED, State.LOST):
        raise StateConflict(f"{agent.task.name} is {agent.state} and cannot be started again")
    first = rundir.read_launch(ctx.run_dir(agent.task.id))
    if first is not None:
        ctx = replace(ctx, environ=first.env)
    before = agent
    agent, start = _plan(ctx, config, agent, first, fresh=fresh)
    # A lost agent's processes may have outlived their tmux server.
    removal.end(ctx, agent, config.cleanup.grace_s)
    agent = ctx.store.swap(
        agent,
        expect=[State.EXITED, State.LOST],
        what=EventKind.RESTARTING,
        why=" ".join(start.argv)[:200],
        state=State.RUNNING,
        status=Status.STARTING,
        # Until it runs or has failed nobody else judges what there is of it.
        owner=procfs.identify_self(),
        socket=ctx.socket,
        process=None,
        shim=None,
        place=None,
        exit=None,
        ended_at=None,
        reported=None,
        reported_at=None,
        question=None,
        stopped=False,
        reason=None,
        restart_at=None,
        conversation=agent.task.conversation,
        started_at=ctx.clock(),
        restarts=agent.run.number + 1,
    )
    try:
        return _start(ctx, config, agent, start)
    except BaseException as failure:
        removal.end(ctx, agent, config.cleanup.grace_s)
        _take_back(ctx, agent, before, start, failure)
        raise


def _take_back(
    ctx: Context, agent: Agent, before: Agent, start: _Start, failure: BaseException
) -> None:
    is_lost = before.state is State.LOST
    is_gone = start.resumes and says_resume_failed(start.profile, str(failure))
    ctx.store.swap(
        agent,
        expect=[State.RUNNING],
        what=EventKind.RESTART_FAILED,
        why=str(failure) or repr(failure),
        state=before.state,
        status=Status.LOST if is_lost else Status.CRASHED,
        owner=None,
        exit=before.run.exit,
        ended_at=before.run.ended_at if is_lost else ctx.clock(),
        stopped=before.run.stopped,
        reason=before.reason,
        restart_at=before.restart_at,
        process=None,
        shim=None,
        place=None,
        conversation=None if is_gone else before.task.conversation,
    )


def says_resume_failed(profile: Profile | None, text: str) -> bool:
    """Whether the program itself says that the conversation to go on with is not there."""
    pattern = profile.resume_failed if profile else ""
    return bool(pattern and re.search(pattern, text, re.MULTILINE))


def forget_conversation(ctx: Context, agent: Agent) -> None:
    """The conversation is not there any more: the next start begins a new one."""
    ctx.store.swap(
        agent,
        expect=[State.EXITED],
        what=EventKind.RESUME_FAILED,
        why="its screen says that the conversation is gone; the next start begins a new one",
        conversation=None,
    )


def _start(ctx: Context, config: Config, agent: Agent, start: _Start) -> Agent:
    place = launch.open_window(
        ctx,
        agent,
        argv=start.argv,
        env=start.env,
        stdin_task=start.stdin_task,
        grace_s=config.cleanup.grace_s,
    )
    with rundir.listening(ctx.run_dir(agent.task.id)) as fifo:
        started = launch.wait_started(ctx, agent, fifo)
        ended = launch.wait_settled(ctx, agent, fifo)
    if ended is not None and ended.exit is not None and ended.exit.code != 0:
        lines = launch.last_lines(ctx, agent)
        raise StartFailed(
            f"{agent.task.name} ended at once with {view.describe_exit(ended.exit)}; its worktree "
            f"is untouched. Its last lines:\n{lines}"
        )
    return ctx.store.swap(
        agent,
        expect=[State.RUNNING],
        what=EventKind.STARTED,
        why=f"pid {started.process.pid}",
        status=Status.WORKING,
        owner=None,
        place=place,
        process=started.process,
        shim=started.shim,
        started_at=started.at,
        last_activity_at=started.at,
    )


@dataclass(frozen=True, slots=True)
class _Start:
    """How an agent is started again; `resumes` if it goes on with an earlier conversation."""

    argv: tuple[str, ...]
    env: dict[str, str]
    profile: Profile | None = None
    stdin_task: bool = False
    resumes: bool = False


def _plan(
    ctx: Context, config: Config, agent: Agent, first: rundir.LaunchRecord | None, *, fresh: bool
) -> tuple[Agent, _Start]:
    """How to start the agent again, and the agent with the conversation it will have."""
    if agent.task.command:
        return agent, _Start(agent.task.command, {})
    profile = config.agents.get(agent.task.agent)
    if profile is None:
        raise StartFailed(
            f"there is no agent profile {agent.task.agent!r} any more; put it back in the "
            "configuration"
        )
    resumes = not fresh and profile.can_resume(agent.task.conversation)
    if not resumes:
        task = replace(agent.task, conversation=profile.new_conversation())
        agent = replace(agent, task=task)
    conversation = agent.task.conversation or ""
    argv = configuration.build_command(
        profile,
        task=agent.task.text,
        conversation=conversation,
        name=agent.task.name,
        worktree=agent.task.worktree,
        resume=resumes,
    )
    if resumes and first is not None and _resume_is_built_in(config, agent.task.agent):
        argv = carry_flags(first.argv, argv, task=agent.task.text, conversation=conversation)
    env = dict(profile.env)
    argv = launch.find_command(argv, {**ctx.environ, **env})
    return agent, _Start(argv, env, profile, profile.task is TaskBy.STDIN, resumes)


def _resume_is_built_in(config: Config, name: str) -> bool:
    """Whether the person changed at most how it is first started, not how it goes on."""
    return config.sources.get(("agents", name, "resume")) is configuration.Origin.BUILT_IN
