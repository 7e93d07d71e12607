"""`tmuxorch attach`: look at an agent's window."""

from __future__ import annotations

import os

import click

from tmuxorch.cli.app import common_options, json_errors_option, name_argument
from tmuxorch.cli.screen import need_terminal
from tmuxorch.cli.session import Session
from tmuxorch.model import Agent
from tmuxorch.service.workers import attaching


@click.command("attach")
@name_argument
@click.option("--read-only", is_flag=True, help="Look without typing.")
@json_errors_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, read_only: bool) -> int:
    """Attach to an agent's window: switch to it inside its tmux server, else take the terminal."""
    session: Session = ctx.obj
    return attach_to(session, session.find(name), read_only=read_only)


def attach_to(session: Session, agent: Agent, *, read_only: bool) -> int:
    """Never returns outside tmux: the terminal becomes tmux's."""
    way = attaching.switch_or_take(session.ctx, agent, read_only=read_only)
    if way is None:
        return 0
    need_terminal("attach", f"`tmuxorch logs {agent.task.name}` prints the screen without one")
    os.execve(way.argv[0], way.argv, way.environ)
