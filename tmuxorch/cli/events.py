"""`tmuxorch events`: the decision log of all agents."""

from __future__ import annotations

import json
import sys
import time

import click

from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core import view
from tmuxorch.core.literal import literal
from tmuxorch.model import Event

FOLLOW_S = 0.1


@click.command("events")
@click.option("-n", "limit", type=click.IntRange(min=1), default=50, help="The last N events.")
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes; JSON by line.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, limit: int, follow: bool, as_json: bool) -> int:
    """Print what was done, with the facts that led to it, oldest first."""
    session: Session = ctx.obj
    store = session.ctx.store
    events = store.events(limit=limit)
    if as_json and not follow:
        print_json([as_object(event) for event in events])
        return 0
    last = 0
    version = -1
    while True:
        for event in events:
            last = event.seq
            sys.stdout.write(json.dumps(as_object(event)) if as_json else line(event))
            sys.stdout.write("\n")
        sys.stdout.flush()
        if not follow:
            return 0
        while (now := store.data_version()) == version:
            time.sleep(FOLLOW_S)
        version = now
        events = store.events(after=last)


def as_object(event: Event) -> dict[str, object]:
    return {
        "seq": event.seq,
        "at": view.iso(event.at),
        "id": event.agent,
        "name": event.name,
        "what": event.what,
        "why": event.why,
    }


def line(event: Event, *, with_name: bool = True) -> str:
    """One event for a person, on one line."""
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
    name = f"{event.name}: " if with_name else ""
    why = f": {event.why}" if event.why else ""
    return literal(f"{at}  {name}{event.what}{why}")
