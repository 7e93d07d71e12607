"""`tmuxorch send`: a message to an agent."""

from __future__ import annotations

import sys
from itertools import islice

import click

from tmuxorch.cli.app import common_options, json_option, name_argument
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.errors import BadText, NotDelivered
from tmuxorch.service.workers import sending

WITH_VALUE = ("-L", "-S", "--repo")
FLAGS = (
    *("-q", "--quiet", "--json", "-h", "--help"),
    *("--answer", "--no-confirm", "--literal"),
)


class Message(click.Command):
    """Takes the word after NAME as it is, though it begins like an option (`-quick fix`).

    Only the very spelling of an option is one there; `--` before the text sends even that.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options: list[str] = []
        words: list[str] = []
        rest = iter(args)
        for word in rest:
            if word == "--":
                words += rest
            elif word in WITH_VALUE:
                options += [word, *islice(rest, 1)]
            elif word in FLAGS or (word.startswith("-") and len(words) != 1):
                options.append(word)
            else:
                words.append(word)
        return super().parse_args(ctx, [*options, "--", *words])


@click.command("send", cls=Message)
@name_argument
@click.argument("text", default="-", metavar="[TEXT|-]")
@click.option("--answer", is_flag=True, help="The text answers the question it asks.")
@click.option("--no-confirm", is_flag=True, help="Do not wait to see that it is taken.")
@click.option("--literal", is_flag=True, help="A leading !, / or @ is text, where that can be.")
@json_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    text: str,
    answer: bool,
    no_confirm: bool,
    literal: bool,
    as_json: bool,
) -> int:
    """Paste TEXT (or standard input) as one message, submit it, and see that it is taken.

    Of standard input one final newline is left out, as it would submit a second time. An agent
    that asks something is not sent to, unless the text is the --answer.
    """
    session: Session = ctx.obj
    agent = session.find(name)
    if text == "-":
        text = _standard_input()
    config = session.ctx.settings.for_ending(agent.task.repo)
    manner = sending.Manner(answer=answer, confirm=not no_confirm, literal=literal)
    try:
        delivery = sending.send(session.ctx, config, agent, text, manner)
    except NotDelivered:
        if as_json:
            print_json({"delivered": False, "queued": False})
        raise
    if as_json:
        is_known = delivery is not sending.Delivery.SENT
        queued = delivery is sending.Delivery.QUEUED
        print_json({"delivered": True if is_known else None, "queued": queued})
    elif delivery is sending.Delivery.SENT:
        session.narrate(
            f"sent to {agent.task.name}, not confirmed: nothing shows whether it was taken"
        )
    else:
        sys.stdout.write(f"{delivery}\n")
    return 0


def _standard_input() -> str:
    try:
        data = sys.stdin.buffer.read(sending.MAX_TEXT_BYTES + 2).removesuffix(b"\n")
        sending.check_size(data)
        return data.decode()
    except UnicodeDecodeError as e:
        raise BadText("standard input is not UTF-8 text; nothing was sent") from e
