"""`tmuxorch send`: a message to an agent."""

from __future__ import annotations

import sys

import click

from tmuxorch.cli.app import common_options, name_argument
from tmuxorch.cli.session import Session
from tmuxorch.errors import BadText
from tmuxorch.service import running


@click.command("send", context_settings={"ignore_unknown_options": True})
@name_argument
@click.argument("text", default="-", metavar="[TEXT|-]")
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, text: str) -> int:
    """Paste TEXT (or standard input) as one message and submit it.

    Of standard input one final newline is left out, as it would submit a second time.
    """
    session: Session = ctx.obj
    agent = session.find(name)
    if text == "-":
        try:
            text = sys.stdin.buffer.read().decode().removesuffix("\n")
        except UnicodeDecodeError as e:
            raise BadText("standard input is not UTF-8 text; nothing was sent") from e
    running.send(session.ctx, agent, text)
    session.narrate(f"sent to {agent.name}")
    return 0
