"""`tmuxorch send`: a message to an agent."""

from __future__ import annotations

import sys
from itertools import islice

import click

from tmuxorch.cli.app import common_options, json_errors_option, name_argument
from tmuxorch.cli.session import Session
from tmuxorch.errors import BadText
from tmuxorch.service.workers import running

WITH_VALUE = ("-L", "-S", "--repo")
FLAGS = ("-q", "--quiet", "--json", "-h", "--help")


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
@json_errors_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, text: str) -> int:
    """Paste TEXT (or standard input) as one message and submit it.

    Of standard input one final newline is left out, as it would submit a second time.
    """
    session: Session = ctx.obj
    agent = session.find(name)
    if text == "-":
        try:
            data = sys.stdin.buffer.read(running.MAX_TEXT_BYTES + 2).removesuffix(b"\n")
            running.check_size(data)
            text = data.decode()
        except UnicodeDecodeError as e:
            raise BadText("standard input is not UTF-8 text; nothing was sent") from e
    running.send(session.ctx, agent, text)
    session.narrate(f"sent to {agent.task.name}")
    return 0
