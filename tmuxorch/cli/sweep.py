"""`tmuxorch sweep`: find what lies around, and clear it away."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from tmuxorch.cli import paint
from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core.sizes import human_size
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.sweep import sweep
from tmuxorch.service.sweep.sweep import Disposal, Orphan

ACTS = (Disposal.REMOVE, Disposal.SALVAGE)


@click.command("sweep")
@click.option("--apply", "act", is_flag=True, help="Clear it away; without this nothing changes.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, act: bool, as_json: bool) -> int:
    """Find orphaned worktrees, branches, windows, processes and files, each with its reason.

    What holds work is saved before it goes. Processes are only shown.
    """
    session: Session = ctx.obj
    keep_days = session.config().history.keep_days
    found = sweep.observe_orphans(session.ctx, keep_days=keep_days)
    if session.repo_path is not None:
        found = [orphan for orphan in found if orphan.repo == session.repo_root()]
    failed = False
    if act:
        found, failed = _apply(session, found, keep_days)
    if as_json:
        print_json([orphan.as_json() for orphan in found])
    else:
        _print(session, found, act)
    return 1 if failed else 0


def _apply(session: Session, found: list[Orphan], keep_days: int) -> tuple[list[Orphan], bool]:
    """Clear one after the other; one that cannot be cleared does not stop the others."""
    after, failed = [], False
    for orphan in found:
        if orphan.action not in ACTS:
            after.append(orphan)
            continue
        try:
            done = sweep.apply(session.ctx, orphan, keep_days=keep_days)
        except TmuxorchError as error:
            failed = True
            done = replace(orphan, action=Disposal.KEEP, reason=f"{orphan.reason}; {error.message}")
        after.append(done)
    return after, failed


def _print(session: Session, found: list[Orphan], act: bool) -> None:
    if not found:
        session.narrate("nothing lies around")
        return
    rows = [("", "KIND", "SIZE", "WHAT", "WHY")]
    for orphan in found:
        size = "" if orphan.bytes is None else human_size(orphan.bytes)
        what = "done" if orphan.done else str(orphan.action)
        rows.append((what, orphan.kind, size, orphan.name, orphan.reason))
    sys.stdout.write(paint.table(rows, colours=False, width=0))
    for orphan in found:
        if orphan.command and not orphan.done:
            session.narrate(f"{orphan.name}: by hand with  {orphan.command}")
    if not act and any(orphan.action in ACTS for orphan in found):
        session.narrate("nothing was changed; `tmuxorch sweep --apply` removes and salvages these")
