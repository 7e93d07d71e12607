"""`tmuxorch restore`: bring a removed worker back."""

from __future__ import annotations

import sys

import click

from tmuxorch.cli.app import common_options, complete_removed, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.service.health.leader import ensure_watcher
from tmuxorch.service.removal import restoring


@click.command("restore")
@click.argument("name", shell_complete=complete_removed)
@click.option("-n", "--name", "new_name", help="Its new name; default: the old one, if free.")
@click.option("--start", is_flag=True, help="Start the agent again, resuming its conversation.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, new_name: str | None, start: bool, as_json: bool) -> int:
    """Bring a removed worker back with its branch, worktree and files, as they were.

    Of several removed workers of one name the newest is meant; an id means exactly one.
    """
    session: Session = ctx.obj
    entry = session.find_removed(name)
    if start:
        session.ctx.check_tools()
        session.ctx.tmux().check_answers()
    made = restoring.restore(
        session.ctx, session.config(entry.task.repo), entry, name=new_name, start=start
    )
    if start:
        ensure_watcher(session.ctx)
    if as_json:
        print_json(session.look(made))
        return 0
    session.narrate(f"{made.task.name} is back on {made.task.branch} in {made.task.worktree}")
    if not start:
        session.narrate(f"start its agent with: tmuxorch restart {made.task.name}")
    sys.stdout.write(f"{made.task.name}\n")
    return 0
