"""`tmuxorch why`: what was seen of one agent, and what was done about it."""

from __future__ import annotations

import sys

import click

from tmuxorch.cli.app import common_options, json_option, name_argument
from tmuxorch.cli.events import as_object, line
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.errors import UnknownName


@click.command("why")
@name_argument
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, as_json: bool) -> int:
    """Print the decision log of one agent, a removed one too, oldest first."""
    session: Session = ctx.obj
    try:
        agent_id = session.find(name).task.id
    except UnknownName:
        agent_id = session.find_removed(name).task.id
    events = session.ctx.store.events(agent_id=agent_id)
    if as_json:
        print_json([as_object(event) for event in events])
        return 0
    for event in events:
        sys.stdout.write(line(event, with_name=False) + "\n")
    return 0
