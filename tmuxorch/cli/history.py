"""`tmuxorch history`: what became of removed workers."""

from __future__ import annotations

import sys
import time

import click

from tmuxorch.cli import paint
from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core import view


@click.command("history")
@click.argument("search", nargs=-1)
@click.option("-n", "limit", type=click.IntRange(min=1), default=50, help="At most N rows.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, search: tuple[str, ...], limit: int, as_json: bool) -> int:
    """List removed workers, newest first; SEARCH looks in names, tasks and branches."""
    session: Session = ctx.obj
    repo = session.repo_root() if session.repo_path else None
    entries = session.ctx.store.history(search=" ".join(search), repo=repo, limit=limit)
    if as_json:
        print_json([view.history_json(entry) for entry in entries])
        return 0
    if not entries:
        session.narrate("no removed workers" + (" match" if search else " yet"))
        return 0
    now = time.time()
    rows = [("REASON", "NAME", "AGENT", "AGO", "TOOK", "CHANGES", "TASK")]
    for e in entries:
        changes = "" if e.files_changed is None else f"+{e.insertions} -{e.deletions}"
        ago, took = view.age(now - e.removed_at), view.age(e.duration_s)
        rows.append((e.reason, e.name, e.agent, ago, took, changes, e.task.partition("\n")[0]))
    sys.stdout.write(paint.table(rows, colours=paint.wants_colour(sys.stdout)))
    return 0
