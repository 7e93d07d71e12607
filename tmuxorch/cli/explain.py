"""`tmuxorch explain`: why an agent's status is what it is."""

from __future__ import annotations

import sys

import click

from tmuxorch.cli import paint
from tmuxorch.cli.app import common_options, json_option, name_argument
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core.literal import literal
from tmuxorch.core.view import age, describe_question, iso, question_json
from tmuxorch.service.health.explaining import Explanation, explain

LINE_MAX = 100


@click.command("explain")
@name_argument
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, as_json: bool) -> int:
    """Look at an agent anew, and print what its hook, title, screen and output say of it."""
    session: Session = ctx.obj
    agent = session.find(name)
    found = explain(session.ctx, session.ctx.settings.for_ending(agent.task.repo), agent)
    if as_json:
        print_json({"id": agent.task.id, "name": agent.task.name, **_as_object(found)})
    else:
        _print(found, session.ctx.clock())
    return 0


def _as_object(found: Explanation) -> dict[str, object]:
    return {
        "status": found.status,
        "by": found.by,
        "why": found.why or None,
        "question": question_json(found.question),
        "sources": [
            {"source": e.source, "status": e.status, "at": iso(e.at), "line": e.line or None}
            for e in found.evidence
        ],
    }


def _print(found: Explanation, now: float) -> None:
    sys.stdout.write(f"{found.status}, by its {found.by}{found.why and ': '}{found.why}\n")
    rows = [
        (
            "*" if evidence.source == found.by else "",
            evidence.source,
            evidence.status or "-",
            "-" if evidence.at is None else f"{age(now - evidence.at)} ago",
            evidence.line[:LINE_MAX],
        )
        for evidence in found.evidence
    ]
    if rows:
        sys.stdout.write(paint.table(rows, colours=False, width=0))
    if found.question is not None:
        sys.stdout.write("It asks:\n")
        for line in describe_question(found.question).splitlines():
            sys.stdout.write(f"{literal(line)}\n")
