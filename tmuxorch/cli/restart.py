"""`tmuxorch restart`: start an agent again in its worktree."""

from __future__ import annotations

import click

from tmuxorch.cli.app import common_options, json_option, name_argument
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.service import running


@click.command("restart")
@name_argument
@click.option("--fresh", is_flag=True, help="Begin a new conversation.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, fresh: bool, as_json: bool) -> int:
    """Start the agent again, resuming its conversation where its profile can."""
    session: Session = ctx.obj
    agent = session.find(name)
    restarted = running.restart(session.ctx, session.config(agent.repo), agent, fresh=fresh)
    if as_json:
        print_json(session.look(restarted))
    session.narrate(f"{restarted.name} runs again")
    return 0
