"""`tmuxorch new`: make a worker."""

from __future__ import annotations

import os
import shlex
import sys

import click

from tmuxorch import config as configuration
from tmuxorch import paths
from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.output import print_json, teller
from tmuxorch.cli.session import Session
from tmuxorch.cli.trust import ask_trust
from tmuxorch.errors import BadText, ConfigInvalid, NotTrusted, TmuxorchError, UsageError
from tmuxorch.model import Kind
from tmuxorch.reading import read_stream
from tmuxorch.service.health.leader import ensure_watcher
from tmuxorch.service.repositories import find_bases
from tmuxorch.service.workers import creation
from tmuxorch.service.workers.sending import MAX_TEXT_BYTES

SILENCE_S = 60.0  # that a FIFO may keep before it is given up
COMPLETION_S = 2.0  # that a person waits for after Tab


def _complete_agent(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Names of agent profiles for the shell."""
    try:
        agents = configuration.load(paths.config_path(os.environ), None).agents
    except ConfigInvalid:
        return []
    return sorted(name for name in agents if name.startswith(incomplete))


def _complete_base(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of branches and tags for the shell, which takes them as they are: `$(id)` is one."""
    session: Session = ctx.obj
    try:
        bases = find_bases(session.cwd, timeout_s=COMPLETION_S)
    except TmuxorchError:
        return []
    return [name for name in bases if name.startswith(incomplete) and shlex.quote(name) == name]


@click.command("new", context_settings={"ignore_unknown_options": False})
@click.argument("words", nargs=-1, metavar="[TASK] [-- CMD...]")
@click.option("-n", "--name", help="Its name; default: made from the task.")
@click.option(
    "-a",
    "--agent",
    shell_complete=_complete_agent,
    help="Which agent profile; default: defaults.agent of the config.",
)
@click.option(
    "-b",
    "--base",
    shell_complete=_complete_base,
    help="Branch, tag or commit to start from; default: where you are.",
)
@click.option("--branch", help="Its branch; an existing one is worked on as it is.")
@click.option("--kind", type=click.Choice([k.value for k in Kind]), help="Restarted when it dies?")
@click.option("-f", "--file", "task_file", metavar="FILE|-", help="Read the task from a file.")
@click.option("--attach", is_flag=True, help="Attach to its window at once.")
@click.option("--no-wait", is_flag=True, help="Return as soon as it runs.")
@json_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    name: str | None,
    agent: str | None,
    base: str | None,
    branch: str | None,
    kind: str | None,
    task_file: str | None,
    attach: bool,
    no_wait: bool,
    as_json: bool,
) -> int:
    """Make a worker: a branch, a worktree, a tmux window and the agent running in it.

    After `--` stands any command to run as the agent; {task} in it becomes the task.
    """
    session: Session = ctx.obj
    before, own_command = _split_command(words)
    if own_command and agent:
        raise UsageError("choose either an agent with -a or a command after --, not both")
    task = _read_task(before, task_file)
    repo = session.repo()
    try:
        config = session.config(repo.root)
    except NotTrusted:
        ask_trust(session, repo.root)
        config = session.config(repo.root)
    made = creation.create(
        session.ctx,
        config,
        creation.Request(
            repo=repo,
            cwd=session.cwd,
            task=task,
            name=name,
            agent=agent,
            base=base,
            branch=branch,
            kind=Kind(kind) if kind else None,
            command=own_command,
            wait=not no_wait,
        ),
        on_output=None if session.quiet else teller(),
    )
    ensure_watcher(session.ctx)
    if as_json:
        print_json(session.look(made))
    else:
        session.narrate(f"{made.task.name} works on {made.task.branch} in {made.task.worktree}")
        session.narrate(f"look at it with: tmuxorch attach {made.task.name}")
        sys.stdout.write(f"{made.task.name}\n")
    if attach:
        from tmuxorch.cli.attach import attach_to

        return attach_to(session, made, read_only=False)
    return 0


def _split_command(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands before and after `--`; click drops the `--` itself."""
    argv = sys.argv[1:]
    if "--" not in argv:
        return words, ()
    after = tuple(argv[argv.index("--") + 1 :])
    if not after:
        raise UsageError("there is no command after --")
    return words[: len(words) - len(after)], after


def _read_task(words: tuple[str, ...], task_file: str | None) -> str:
    if task_file is None:
        return " ".join(words)
    if words:
        raise UsageError("give the task either as words or with -f, not both")
    try:
        if task_file == "-":
            data = sys.stdin.buffer.read(MAX_TEXT_BYTES + 1)
        else:
            data = read_stream(task_file, limit=MAX_TEXT_BYTES, silence_s=SILENCE_S)
        if len(data) > MAX_TEXT_BYTES:
            raise BadText(f"the task in {task_file} is larger than 1 MB; nothing was made")
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as e:
        raise BadText(f"the task in {task_file} is not UTF-8 text; nothing was made") from e
    except OSError as e:
        raise BadText(f"the task file {task_file} cannot be read: {e.strerror}") from e
