"""`tmuxorch merge`: bring an agent's work into its base branch."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from tmuxorch.cli.app import common_options, json_option, name_argument
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core import view
from tmuxorch.errors import UsageError, WorkAtStake
from tmuxorch.model import HistoryEntry, Reason
from tmuxorch.service.landing import merging
from tmuxorch.service.landing.merging import How, Merged
from tmuxorch.service.removal import removal
from tmuxorch.service.workers.visibility import refuse_unseen


@click.command("merge")
@name_argument
@click.option("--squash", is_flag=True, help="All of it as one commit.")
@click.option(
    "--rebase", is_flag=True, help="Each commit anew on top of the base; no merge commit."
)
@click.option("--into", metavar="BRANCH", help="The branch to merge into; default: its base.")
@click.option("--commit", is_flag=True, help="Commit its changed and new files first.")
@click.option("-m", "--message", help="Message of the commit that is made.")
@click.option("--rm", "remove", is_flag=True, help="Remove it afterwards if nothing else is lost.")
@json_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    squash: bool,
    rebase: bool,
    into: str | None,
    commit: bool,
    message: str | None,
    remove: bool,
    as_json: bool,
) -> int:
    """Bring the agent's commits into its base branch.

    A conflict, or a file that would be overwritten, is found first and nothing is changed.
    """
    session: Session = ctx.obj
    if squash and rebase:
        raise UsageError("choose either --squash or --rebase, not both")
    how = How.SQUASH if squash else How.REBASE if rebase else How.MERGE
    agent = session.find(name)
    if remove:
        removal.refuse_from_inside(agent)
        refuse_unseen(session.ctx, agent)
    done = merging.merge(session.ctx, agent, how=how, message=message, into=into, commit=commit)
    session.narrate(_words(done))
    removed, kept = None, None
    if remove:
        try:
            removed = _remove(session, done)
        except WorkAtStake as stake:
            kept = stake
    if as_json:
        print_json(_as_json(done, removed))
    if kept is not None:
        raise kept
    return 0


def _remove(session: Session, done: Merged) -> HistoryEntry:
    merging.check_nothing_else_at_stake(done)
    entry = removal.remove(
        session.ctx,
        session.ctx.store.agent(done.agent.task.id) or done.agent,
        reason=Reason.USER,
    )
    kept = f"; branch {entry.task.branch} is kept" if entry.branch_kept else ""
    session.narrate(f"removed {entry.task.name}{kept}")
    return entry


def _words(done: Merged) -> str:
    if not done.changed:
        return f"nothing to merge: {done.base} has all of {done.agent.task.name} already"
    count = len(done.commits)
    commits = "1 commit" if count == 1 else f"{count} commits"
    moved = f"{done.before[:10]}..{done.after[:10]}"
    return f"merged {commits} of {done.agent.task.name} into {done.base} ({moved})"


def _as_json(done: Merged, removed: HistoryEntry | None) -> dict[str, Any]:
    return {
        "id": done.agent.task.id,
        "name": done.agent.task.name,
        "branch": done.agent.task.branch,
        "base": done.base,
        "how": done.how,
        "before": done.before,
        "after": done.after,
        "commits": [asdict(commit) for commit in done.commits],
        "removed": None if removed is None else view.history_json(removed),
    }
