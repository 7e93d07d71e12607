"""`tmuxorch answer`: choose an answer of the question that an agent asks."""

from __future__ import annotations

import sys

import click

from tmuxorch.cli.app import common_options, complete_choice, json_option, name_argument
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core.literal import literal
from tmuxorch.service.workers import answering


@click.command("answer")
@name_argument
@click.argument("choice", shell_complete=complete_choice)
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, choice: str, as_json: bool) -> int:
    """Choose an answer by its key (2, y) or its first words, and see that it is taken.

    Nothing is pressed if the agent asks nothing, or something else than the list shows.
    """
    session: Session = ctx.obj
    agent = session.find(name)
    config = session.ctx.settings.for_ending(agent.task.repo)
    taken = answering.answer(session.ctx, config, agent, choice)
    if as_json:
        print_json({"answered": True, "choice": {"key": taken.key, "text": taken.text}})
    else:
        sys.stdout.write(f"answered: {literal(taken.text)}\n")
    return 0
