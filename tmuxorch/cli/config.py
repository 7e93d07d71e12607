"""`tmuxorch config`: show the effective configuration, trust a repository's."""

from __future__ import annotations

import click

from tmuxorch import config as configuration
from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session


@click.command("config")
@click.option("--trust", is_flag=True, help="Let this repository's .tmuxorch.toml run commands.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, trust: bool, as_json: bool) -> int:
    """Print the settings in force and where each comes from."""
    session: Session = ctx.obj
    if trust:
        path, _, digest = configuration.read_repo_file(session.repo().root)
        session.trust(digest)
        session.narrate(f"{path} may run commands until it is changed")
        return 0
    config = session.config(session.repo_root())
    if as_json:
        print_json(configuration.as_json(config))
    else:
        click.echo(configuration.dump(config), nl=False)
    return 0
