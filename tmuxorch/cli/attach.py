"""`tmuxorch attach`: look at an agent's window."""

from __future__ import annotations

import os
import sys

import click

from tmuxorch.cli.app import common_options, name_argument
from tmuxorch.cli.session import Session
from tmuxorch.errors import NeedsTerminal
from tmuxorch.model import Agent
from tmuxorch.service import running


@click.command("attach")
@name_argument
@click.option("--read-only", is_flag=True, help="Look without typing.")
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, read_only: bool) -> int:
    """Attach to an agent's window: switch to it inside its tmux server, else take the terminal."""
    session: Session = ctx.obj
    return attach_to(session, session.find(name), read_only=read_only)


def attach_to(session: Session, agent: Agent, *, read_only: bool) -> int:
    """Never returns outside tmux: the terminal becomes tmux's."""
    pane = running.find_pane(session.ctx, agent).place.pane
    tmux = session.ctx.tmux(agent.socket)
    flag = ["-r"] if read_only else []
    if _inside(agent.socket):
        tmux.run("switch-client", *flag, "-t", pane)
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NeedsTerminal(
            f"attach needs a terminal; `tmuxorch logs {agent.name}` prints the screen without one"
        )
    # In another server's window $TMUX would make tmux refuse to nest.
    environ = {k: v for k, v in os.environ.items() if k not in ("TMUX", "TMUX_PANE")}
    argv = [tmux.program, "-u", "-S", agent.socket, "attach-session", *flag, "-t", pane]
    os.execve(tmux.program, argv, environ)


def _inside(socket: str) -> bool:
    """Is this terminal a window of that very server?"""
    current = os.environ.get("TMUX", "").partition(",")[0]
    if not current or not os.path.exists(current) or not os.path.exists(socket):
        return False
    return os.path.samefile(current, socket)
