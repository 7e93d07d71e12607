"""`tmuxorch init`: write a commented configuration."""

from __future__ import annotations

import os

import click

from tmuxorch import config as configuration
from tmuxorch import paths
from tmuxorch.cli import output
from tmuxorch.cli.app import common_options, json_errors_option
from tmuxorch.cli.session import Session
from tmuxorch.errors import TmuxorchError


@click.command("init")
@json_errors_option
@common_options
@click.pass_context
def command(ctx: click.Context) -> int:
    """Write a configuration file in which every setting is explained; never overwrites one."""
    session: Session = ctx.obj
    path = paths.config_path(os.environ)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, "x", encoding="utf-8") as f:
            f.write(configuration.template())
    except FileExistsError as e:
        raise TmuxorchError(f"{path} is there already and was left as it is; edit it") from e
    session.narrate("every setting is in it, commented out, with its default")
    output.write_exactly(os.fsencode(path) + b"\n")
    return 0
