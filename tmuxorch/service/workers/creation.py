"""Making a worker: intent, worktree, setup, window, running; any failure undoes it all."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tmuxorch import config as configuration
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.run import Timeout, alongside, run
from tmuxorch.config.profiles import TaskBy
from tmuxorch.core import naming, view
from tmuxorch.core.literal import pasteable
from tmuxorch.errors import BadText, NameTaken, SetupFailed, StartFailed, TmuxorchError
from tmuxorch.model import Agent, AgentId, EventKind, Kind, Run, State, Status, Task
from tmuxorch.service import places
from tmuxorch.service.care.repository_lock import repo_lock
from tmuxorch.service.removal import removal
from tmuxorch.service.workers import launch, sending

if TYPE_CHECKING:
    from collections.abc import Callable

    from tmuxorch.config import Config
    from tmuxorch.config.profiles import Profile
    from tmuxorch.service.context import Context

_NAME_TRIES = 200


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked for; None and "" mean "you choose"."""

    repo: git.Repo
    cwd: str
    task: str = ""
    name: str | None = None
    agent: str | None = None
    base: str | None = None
    branch: str | None = None
    kind: Kind | None = None
    command: tuple[str, ...] = ()
    wait: bool = True


@dataclass(frozen=True, slots=True)
class _Plan:
    """A request with every question answered; nothing has been made yet."""

    profile: Profile | None
    argv: tuple[str, ...]
    env: dict[str, str]
    stdin_task: bool
    agent: Agent


def create(
    ctx: Context,
    config: Config,
    request: Request,
    *,
    on_output: Callable[[bytes], None] | None = None,
) -> Agent:
    """Make a worker and return it running; on failure nothing of it is left."""
    ctx.check_tools()
    with alongside(ctx.tmux().check_answers):
        plan = _plan(ctx, config, request)
    ctx.make_room(plan.agent.task.worktree)
    agent = _record(ctx, request, plan.agent)
    plan = replace(plan, agent=agent)
    try:
        ctx.checkpoint("create:recorded")
        return _make(ctx, config, request, plan, on_output)
    except BaseException as failure:
        removal.take_back(ctx, agent, failure, EventKind.CREATION_FAILED)
        raise


def _make(
    ctx: Context,
    config: Config,
    request: Request,
    plan: _Plan,
    on_output: Callable[[bytes], None] | None,
) -> Agent:
    agent = plan.agent
    places.mark(agent.task.worktree)
    with repo_lock(ctx, agent.task.repo):
        admin = git.add_worktree(
            request.repo,
            agent.task.worktree,
            branch=agent.task.branch,
            new_branch=agent.task.branch_made,
            commit=agent.task.base_commit,
            reason=ctx.lock_reason(agent),
            marker={"TMUXORCH_AGENT_ID": agent.task.id},
            on_output=on_output,
        )
    ctx.checkpoint("create:worktree")
    agent = _set_up(ctx, config, request, agent, on_output)
    places.seal(agent.task.worktree)
    ctx.checkpoint("create:setup")
    place = launch.open_window(
        ctx,
        agent,
        argv=plan.argv,
        env=plan.env,
        stdin_task=plan.stdin_task,
        grace_s=config.cleanup.grace_s,
    )
    with rundir.listening(ctx.run_dir(agent.task.id)) as fifo:
        ctx.checkpoint("create:window")
        started = launch.wait_started(ctx, agent, fifo)
        ctx.checkpoint("create:started")
        agent = ctx.store.swap(
            agent,
            expect=[State.CREATING],
            what=EventKind.STARTED,
            why=f"pid {started.process.pid} runs {' '.join(plan.argv)[:200]}",
            state=State.RUNNING,
            status=Status.WORKING,
            owner=None,
            place=place,
            process=started.process,
            shim=started.shim,
            admin=admin,
            started_at=started.at,
            last_activity_at=started.at,
        )
        ctx.checkpoint("create:running")
        if request.wait:
            agent = _settle(ctx, agent, fifo)
    if plan.profile is not None and plan.profile.task is TaskBy.PASTE and agent.task.text:
        _hand_over(ctx, config, agent)
    return agent


def _hand_over(ctx: Context, config: Config, agent: Agent) -> None:
    """Send the task once the agent takes input; never into a dialog it may be showing."""
    try:
        sending.send(ctx, config, agent, agent.task.text, sending.Manner(patient=True))
    except TmuxorchError as e:
        task_file = rundir.task_file(ctx.run_dir(agent.task.id))
        ctx.narrate(
            f"{e.message}\nits task was not handed over; when it takes input, send it with: "
            f"tmuxorch send {agent.task.name} - < {pasteable([task_file])}"
        )


def _settle(ctx: Context, agent: Agent, fifo: int) -> Agent:
    ended = launch.wait_settled(ctx, agent, fifo)
    if ended is None or ended.exit is None:
        return agent
    if ended.exit.code == 0:
        return agent
    lines = launch.last_lines(ctx, agent)
    words = (
        f"{agent.task.name} ended at once with {view.describe_exit(ended.exit)}; nothing was left"
    )
    raise StartFailed(f"{words}. Its last lines:\n{lines}" if lines else f"{words}.")


# -- answering the questions ------------------------------------------------------------


def _plan(ctx: Context, config: Config, request: Request) -> _Plan:
    _check_task(request.task)
    agent_id = AgentId(os.urandom(6).hex())
    base = git.resolve_base(
        request.repo, request.base or config.defaults.base or None, cwd=request.cwd
    )
    name = _choose_name(ctx, request)
    branch, made = _choose_branch(config, request, name)
    worktree = naming.worktree_path(ctx.worktrees_dir, request.repo.root, name, agent_id)
    for path in (worktree, request.repo.root):
        if not _is_text(path):
            raise BadText(f"the path {os.fsencode(path)!r} is not valid UTF-8; rename it first")
    if not _is_text(branch):
        raise BadText(f"the branch {os.fsencode(branch)!r} is not valid UTF-8; choose another")
    program = _choose_program(config, request, name, worktree)
    profile = program.profile
    argv = launch.find_command(program.argv, {**ctx.environ, **program.env})
    task = Task(
        id=agent_id,
        name=name,
        repo=request.repo.root,
        text=request.task,
        agent=program.name,
        kind=request.kind or (profile.kind if profile else None) or config.defaults.kind,
        branch=branch,
        branch_made=made,
        base=base.name,
        base_commit=base.commit,
        worktree=worktree,
        created_at=ctx.clock(),
        command=argv if request.command else (),
        conversation=program.conversation,
    )
    agent = Agent(
        task,
        Run(ctx.socket),
        state=State.CREATING,
        status=Status.STARTING,
        owner=procfs.identify_self(),
    )
    by_stdin = profile is not None and profile.task is TaskBy.STDIN
    return _Plan(profile, argv, program.env, by_stdin, agent)


def _check_task(task: str) -> None:
    if "\0" in task or not _is_text(task):
        raise BadText("the task is not valid text (it holds a NUL or bytes that are not UTF-8)")
    if len(task.encode()) > sending.MAX_TEXT_BYTES:
        raise BadText(
            "the task is larger than the 1 MB that an agent is given; put it in a file of the "
            "repository and make reading that the task"
        )


@dataclass(frozen=True, slots=True)
class _Program:
    """What is to be run as the agent; a command of the person's own has no profile."""

    name: str
    argv: tuple[str, ...]
    profile: Profile | None = None
    env: dict[str, str] = field(default_factory=dict)
    conversation: str | None = None


def _choose_program(config: Config, request: Request, name: str, worktree: str) -> _Program:
    if request.command:
        program = os.path.basename(request.command[0])
        argv = configuration.build_custom_command(request.command, request.task)
        return _Program(program if _is_text(program) else ascii(program)[1:-1], argv)
    agent_name = request.agent or config.defaults.agent
    profile = config.agents.get(agent_name)
    if profile is None:
        known = ", ".join(sorted(config.agents))
        raise StartFailed(f"there is no agent profile {agent_name!r}; there are: {known}")
    conversation = profile.new_conversation()
    argv = configuration.build_command(
        profile,
        task=request.task,
        conversation=conversation or "",
        name=name,
        worktree=worktree,
        resume=False,
    )
    return _Program(agent_name, argv, profile, dict(profile.env), conversation)


def _choose_name(ctx: Context, request: Request) -> str:
    taken = {agent.task.name for agent in ctx.store.agents(repo=request.repo.root)}
    if request.name is None:
        return naming.name_from_task(request.task, taken)
    name = naming.check_new_name(request.name)
    if name in taken:
        raise NameTaken(
            f"the name {name!r} is taken in {request.repo.root}; choose another with -n"
        )
    return name


def _choose_branch(config: Config, request: Request, name: str) -> tuple[str, bool]:
    """The branch to work on, and whether it is ours to make.

    A branch that a removed worker left behind holds its work, so a new worker of the same
    name gets the next free branch instead of that one.
    """
    if request.branch is not None:
        git.check_branch_name(request.branch)
        return request.branch, git.branch_commit(request.repo, request.branch) is None
    wanted = naming.default_branch(name, config.defaults.branch_prefix)
    git.check_branch_name(wanted)
    branch, n = wanted, 1
    while git.branch_commit(request.repo, branch) is not None:
        n += 1
        branch = f"{wanted}-{n}"
    return branch, True


def _record(ctx: Context, request: Request, agent: Agent) -> Agent:
    """Write the intent; an automatic name that somebody else took meanwhile is chosen anew."""
    for _ in range(_NAME_TRIES):
        try:
            ctx.store.add(agent)
        except NameTaken:
            if request.name is not None:
                raise
            name = _choose_name(ctx, request)
            branch = agent.task.branch
            if request.branch is None:
                branch = agent.task.branch.removesuffix(agent.task.name) + name
            worktree = naming.worktree_path(ctx.worktrees_dir, agent.task.repo, name, agent.task.id)
            task = replace(agent.task, name=name, branch=branch, worktree=worktree)
            agent = replace(agent, task=task)
        else:
            return agent
    raise NameTaken(
        f"no free name was found for this task in {agent.task.repo}; choose one with -n"
    )


def _set_up(
    ctx: Context,
    config: Config,
    request: Request,
    agent: Agent,
    on_output: Callable[[bytes], None] | None,
) -> Agent:
    """Copy files and run the commands that make a bare checkout workable."""
    setup = config.setup
    if setup.copy and not request.repo.bare:
        copied = git.copy_into_worktree(
            agent.task.repo,
            agent.task.worktree,
            setup.copy,
            timeout_s=setup.timeout_s,
            on_skip=ctx.narrate,
        )
        agent = ctx.store.swap(agent, expect=[State.CREATING], copied=copied)
    if not setup.run and os.path.exists(os.path.join(agent.task.worktree, ".gitmodules")):
        ctx.narrate(
            "its submodules are empty; to fill those of every new worker, put "
            "`git submodule update --init` into setup.run of the configuration"
        )
    environ = {**ctx.environ, "TMUXORCH_AGENT_ID": agent.task.id, "TMUXORCH_NAME": agent.task.name}
    for command in setup.run:
        ctx.narrate(f"setup: {command}")
        try:
            done = run(
                ["sh", "-c", command],
                cwd=agent.task.worktree,
                env=environ,
                timeout_s=setup.timeout_s,
                on_output=on_output or (lambda _: None),
            )
        except Timeout as e:
            raise SetupFailed(
                f"the setup command {command!r} did not end within {setup.timeout_s:g} s; "
                f"{agent.task.name} was not made"
            ) from e
        if done.returncode:
            lines = done.stdout.decode("utf-8", "replace").splitlines()[-launch.LAST_LINES :]
            raise SetupFailed(
                f"the setup command {command!r} failed with exit code {done.returncode}; "
                f"{agent.task.name} was not made. Its last lines:\n" + "\n".join(lines)
            )
    return agent


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
