"""`tmuxorch ls` with options that need the parser."""

from __future__ import annotations

import click

from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.ls import list_agents
from tmuxorch.cli.session import Session


@click.command("ls")
@click.option("--all", "everywhere", is_flag=True, help="Of all repositories.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, everywhere: bool, as_json: bool) -> int:
    """List the live agents of this repository (outside one: of all)."""
    session: Session = ctx.obj
    root = session.repo_root() if session.repo_path and not everywhere else None
    return list_agents(as_json=as_json, everywhere=everywhere, repo=root)
