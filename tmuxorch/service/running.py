"""A worker's days: send it text, stop it, start it again."""

from __future__ import annotations

from dataclasses import replace

from tmuxorch import config as configuration
from tmuxorch.adapters import procfs, rundir
from tmuxorch.core import naming, view
from tmuxorch.core.observation import Alive
from tmuxorch.errors import BadText, NotRunning, StartFailed, StateConflict
from tmuxorch.model import State, Status
from tmuxorch.profiles import TaskBy
from tmuxorch.service import launch, removal
from tmuxorch.service.whereabouts import refuse_unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmuxorch.adapters.tmux import Pane
    from tmuxorch.config import Config
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context

MAX_TEXT_BYTES = 1024 * 1024


def find_pane(ctx: Context, agent: Agent) -> Pane:
    """The agent's pane, wherever a person moved it; `NotRunning` if it has none."""
    pane = ctx.tmux(agent.socket).find_pane(agent.id)
    if pane is None:
        raise NotRunning(
            f"{agent.name} has no window; bring it back with `tmuxorch restart {agent.name}`"
        )
    return pane


def send(ctx: Context, agent: Agent, text: str) -> None:
    """Paste the text as one message and submit it once; nothing in it is changed."""
    if not text:
        raise BadText("the text is empty, so nothing was sent")
    control = naming.find_control(text)
    if control is not None:
        index, what = control
        raise BadText(
            f"the text holds {what} at character {index}, which a terminal would obey; "
            "nothing was sent"
        )
    data = text.encode()
    if len(data) > MAX_TEXT_BYTES:
        raise BadText(
            f"the text is {len(data)} bytes, more than the 1 MB that can be sent; put it in a "
            "file in the worktree and send its name"
        )
    pane = find_pane(ctx, agent)
    if agent.process is None or not isinstance(procfs.observe_process(agent.process), Alive):
        raise NotRunning(
            f"{agent.name} has ended, so nothing was sent; start it again with "
            f"`tmuxorch restart {agent.name}`"
        )
    ctx.tmux(agent.socket).paste(pane.place.pane, data, buffer=f"tmuxorch-{agent.id}")


def stop(ctx: Context, agent: Agent, *, grace_s: float) -> Agent:
    """End the agent's processes and window; worktree, branch and row stay."""
    if agent.state is not State.RUNNING:
        raise NotRunning(f"{agent.name} is not running (it is {agent.state}); nothing was done")
    removal.refuse_from_inside(agent)
    refuse_unseen(ctx, agent)
    removal.save_screen(ctx, agent)
    # Marked before it is ended, so that nobody takes the end for a crash.
    agent = ctx.store.swap(
        agent, expect=[State.RUNNING], what="stopping", why="a person asked", stopped=True
    )
    removal.end(ctx, agent, grace_s)
    ended = rundir.read_exit(ctx.run_dir(agent.id), run=agent.restarts)
    return ctx.store.swap(
        agent,
        expect=[State.RUNNING, State.EXITED],
        what="stopped",
        why="its processes have ended and its window is closed",
        state=State.EXITED,
        status=Status.DONE,
        exit=ended.exit if ended else None,
        ended_at=ended.at if ended else ctx.clock(),
        place=None,
    )


def restart(ctx: Context, config: Config, agent: Agent, *, fresh: bool) -> Agent:
    """Start the agent again in its worktree, resuming its conversation where it can."""
    if agent.state is State.RUNNING:
        agent = stop(ctx, agent, grace_s=config.cleanup.grace_s)
    if agent.state not in (State.EXITED, State.LOST):
        raise StateConflict(f"{agent.name} is {agent.state} and cannot be started again")
    agent, argv, env, stdin_task, resumes = _command(ctx, config, agent, fresh=fresh)
    # A lost agent's processes may have outlived their tmux server.
    removal.end(ctx, agent, config.cleanup.grace_s)
    before = agent
    agent = ctx.store.swap(
        agent,
        expect=[State.EXITED, State.LOST],
        what="restarting",
        why=" ".join(argv)[:200],
        state=State.RUNNING,
        status=Status.STARTING,
        socket=ctx.socket,
        process=None,
        shim=None,
        place=None,
        exit=None,
        ended_at=None,
        reported=None,
        reported_at=None,
        stopped=False,
        reason=None,
        restart_at=None,
        conversation=agent.conversation,
        started_at=ctx.clock(),
        restarts=agent.restarts + 1,
    )
    try:
        return _start(ctx, config, agent, argv, env, stdin_task)
    except BaseException as failure:
        removal.end(ctx, agent, config.cleanup.grace_s)
        ctx.store.swap(
            agent,
            expect=[State.RUNNING],
            what="restart failed",
            why=str(failure),
            state=State.EXITED,
            status=Status.CRASHED,
            exit=before.exit,
            ended_at=ctx.clock(),
            process=None,
            shim=None,
            place=None,
            # A conversation that cannot be resumed would fail the next time too.
            conversation=None if resumes else agent.conversation,
        )
        raise


def forget_conversation(ctx: Context, agent: Agent) -> None:
    """The conversation is not there any more: the next start begins a new one."""
    ctx.store.swap(
        agent,
        expect=[State.EXITED],
        what="resume failed",
        why="its screen says that the conversation is gone; the next start begins a new one",
        conversation=None,
    )


def _start(
    ctx: Context,
    config: Config,
    agent: Agent,
    argv: tuple[str, ...],
    env: dict[str, str],
    stdin_task: bool,
) -> Agent:
    place = launch.open_window(
        ctx, agent, argv=argv, env=env, stdin_task=stdin_task, grace_s=config.cleanup.grace_s
    )
    with rundir.listening(ctx.run_dir(agent.id)) as fifo:
        started = launch.wait_started(ctx, agent, fifo)
        ended = launch.wait_settled(ctx, agent, fifo)
    if ended is not None and ended.exit is not None and ended.exit.code != 0:
        lines = launch.last_lines(ctx, agent)
        raise StartFailed(
            f"{agent.name} ended at once with {view.describe_exit(ended.exit)}; its worktree is "
            f"untouched. Its last lines:\n{lines}"
        )
    return ctx.store.swap(
        agent,
        expect=[State.RUNNING],
        what="started",
        why=f"pid {started.process.pid}",
        status=Status.WORKING,
        place=place,
        process=started.process,
        shim=started.shim,
        started_at=started.at,
        last_activity_at=started.at,
    )


def _command(
    ctx: Context, config: Config, agent: Agent, *, fresh: bool
) -> tuple[Agent, tuple[str, ...], dict[str, str], bool, bool]:
    """How to start the agent again, the agent with the conversation it will have, and whether
    that is an earlier one."""
    profile = config.agents.get(agent.agent)
    if agent.command:
        return agent, agent.command, {}, False, False
    if profile is None:
        raise StartFailed(
            f"there is no agent profile {agent.agent!r} any more; put it back in the configuration"
        )
    resume = not fresh and profile.can_resume(agent.conversation)
    if not resume:
        agent = replace(agent, conversation=profile.new_conversation())
    argv = configuration.build_command(
        profile,
        task=agent.task,
        conversation=agent.conversation or "",
        name=agent.name,
        worktree=agent.worktree,
        resume=resume,
    )
    env = dict(profile.env)
    argv = launch.find_command(argv, {**ctx.environ, **env})
    return agent, argv, env, profile.task is TaskBy.STDIN, resume
