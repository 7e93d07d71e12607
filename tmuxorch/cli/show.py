"""`tmuxorch show`: one agent, with its health facts."""

from __future__ import annotations

import os
import sys

import click

from tmuxorch.adapters.system import procfs
from tmuxorch.cli import paint
from tmuxorch.cli.app import common_options, json_option, name_argument
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core.observation import Alive, Dead, Unknown
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import Agent, ProcessId


@click.command("show")
@name_argument
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, as_json: bool) -> int:
    """Show one agent and what is really there of it."""
    session: Session = ctx.obj
    agent = session.find(name)
    shown = session.look(agent)
    shown["health"] = {
        "window": _window(session, agent),
        "process": _process(agent.run.process),
        "shim": _process(agent.run.shim),
        "worktree": _worktree(agent),
    }
    if as_json:
        print_json(shown)
        return 0
    health = shown.pop("health")
    rows = [(key, _plain(value)) for key, value in shown.items()]
    rows += [(f"seen {key}", value) for key, value in health.items()]
    sys.stdout.write(paint.table(rows, colours=False, width=0))
    return 0


def _window(session: Session, agent: Agent) -> str:
    try:
        pane = session.ctx.tmux(agent.run.socket).find_pane(agent.task.id)
    except TmuxorchError as e:
        return f"unknown: {e.message}"
    if pane is None:
        return "gone"
    others = pane.panes_in_window - 1
    beside = f", {others} other panes beside it" if others else ""
    return f"seen: {pane.place.session} {pane.place.window} {pane.place.pane}{beside}"


def _process(process: ProcessId | None) -> str:
    if process is None:
        return "none recorded"
    fact = procfs.observe_process(process)
    match fact:
        case Alive():
            return f"alive: pid {process.pid}"
        case Dead(how):
            return f"dead: {how}"
        case Unknown(why):
            return f"unknown: {why}"


def _worktree(agent: Agent) -> str:
    return "there" if os.path.isdir(agent.task.worktree) else "gone"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}={_plain(v)}" for k, v in value.items())
    return "-" if value is None else str(value).replace("\n", " ")
