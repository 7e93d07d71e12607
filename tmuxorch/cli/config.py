"""`tmuxorch config`: show the effective configuration, trust a repository's."""

from __future__ import annotations

import sys

import click

from tmuxorch import config as configuration
from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.cli.trust import ask_trust


@click.command("config")
@click.option("--trust", is_flag=True, help="Let this repository's .tmuxorch.toml act.")
@click.option("-y", "--yes", is_flag=True, help="With --trust: do not ask.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, trust: bool, yes: bool, as_json: bool) -> int:
    """Print the settings in force and where each comes from.

    With --trust the repository's own .tmuxorch.toml is shown, and you are asked whether it may
    copy files and run commands until it is changed.
    """
    session: Session = ctx.obj
    if trust:
        ask_trust(session, session.repo().root, yes=yes)
        session.narrate("it may copy files and run commands until it is changed")
        return 0
    config = session.config(session.repo_root())
    if as_json:
        print_json(configuration.as_json(config))
    else:
        sys.stdout.write(configuration.dump(config))
    return 0
