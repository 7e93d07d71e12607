"""`tmuxorch show`: one agent, with its health facts."""

from __future__ import annotations

import sys

import click

from tmuxorch.cli import paint
from tmuxorch.cli.app import common_options, json_option, name_argument
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.service.workers.inspection import Presence, PresenceFact, observe_health


@click.command("show")
@name_argument
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, as_json: bool) -> int:
    """Show one agent and what is really there of it."""
    session: Session = ctx.obj
    agent = session.find(name)
    shown = session.look(agent)
    there = observe_health(session.ctx, agent)
    shown["health"] = {
        "window": _said(there.window, there="seen"),
        "process": _said(there.process, there="alive", gone="dead"),
        "shim": _said(there.shim, there="alive", gone="dead"),
        "worktree": _said(there.worktree),
    }
    if as_json:
        print_json(shown)
        return 0
    health = shown.pop("health")
    rows = [(key, _plain(value)) for key, value in shown.items()]
    rows += [(f"seen {key}", value) for key, value in health.items()]
    sys.stdout.write(paint.table(rows, colours=False, width=0))
    return 0


def _said(found: PresenceFact, *, there: str = "there", gone: str = "gone") -> str:
    words = {Presence.THERE: there, Presence.GONE: gone}
    word = words.get(found.presence, found.presence.value)
    return f"{word}: {found.detail}" if found.detail else word


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}={_plain(v)}" for k, v in value.items())
    return "-" if value is None else str(value).replace("\n", " ")
