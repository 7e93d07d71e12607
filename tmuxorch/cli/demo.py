"""`tmuxorch demo`: six scripted agents in a throw-away repository."""

from __future__ import annotations

import os

import click

from tmuxorch.cli.app import common_options, json_errors_option
from tmuxorch.cli.screen import need_terminal
from tmuxorch.service.care import demo


@click.command("demo")
@json_errors_option
@common_options
def command() -> int:
    """Try every key on six scripted agents; quitting leaves nothing behind."""
    need_terminal("the demo", "nothing was made")
    from tmuxorch.tui.app import run
    from tmuxorch.tui.workplace import Workplace

    with demo.stage(os.environ) as place:
        workplace = Workplace(
            environ=place.environ,
            socket=place.socket,
            repo=place.repo,
            cwd=place.repo,
            keys={},
            title="tmuxorch demo",
        )
        return run(workplace, prepare=lambda _: demo.start_agents(place))
