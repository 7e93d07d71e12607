"""`tmuxorch diff`: an agent's work against its base."""

from __future__ import annotations

import sys

import click

from tmuxorch.cli import output
from tmuxorch.cli.app import common_options, json_errors_option, name_argument
from tmuxorch.cli.session import Session
from tmuxorch.service.workers import inspection


@click.command("diff")
@name_argument
@click.option("--stat", is_flag=True, help="Only files and counts.")
@json_errors_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, stat: bool) -> int:
    """Show commits, staged, unstaged and untracked changes as one diff."""
    session: Session = ctx.obj
    colour = output.wants_colour(sys.stdout)
    output.write_exactly(inspection.read_diff(session.find(name), stat=stat, colour=colour))
    return 0
