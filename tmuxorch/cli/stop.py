"""`tmuxorch stop`: end the process, keep everything else."""

from __future__ import annotations

import click

from tmuxorch.cli.app import common_options, json_option, name_argument
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.service.workers import running


@click.command("stop")
@name_argument
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, as_json: bool) -> int:
    """End the agent's processes and close its window; worktree and branch stay."""
    session: Session = ctx.obj
    agent = session.find(name)
    grace_s = session.ctx.settings.for_ending(agent.task.repo).cleanup.grace_s
    stopped = running.stop(session.ctx, agent, grace_s=grace_s)
    if as_json:
        print_json(session.look(stopped))
    session.narrate(
        f"{stopped.task.name} is stopped; start it again with: tmuxorch restart {stopped.task.name}"
    )
    return 0
