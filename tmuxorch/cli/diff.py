"""`tmuxorch diff`: an agent's work against its base."""

from __future__ import annotations

import sys

import click

from tmuxorch.adapters.git import facade as git
from tmuxorch.cli import output
from tmuxorch.cli.app import common_options, json_errors_option, name_argument
from tmuxorch.cli.session import Session


@click.command("diff")
@name_argument
@click.option("--stat", is_flag=True, help="Only files and counts.")
@json_errors_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, stat: bool) -> int:
    """Show commits, staged, unstaged and untracked changes as one diff."""
    session: Session = ctx.obj
    agent = session.find(name)
    data = git.diff(
        git.find_repo(agent.repo),
        agent.worktree,
        agent.base,
        agent.base_commit,
        admin=agent.admin,
        stat=stat,
        color=output.wants_colour(sys.stdout),
    )
    output.write_exactly(data)
    return 0
