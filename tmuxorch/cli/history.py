"""`tmuxorch history`: what became of removed workers."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime

import click

from tmuxorch.cli import output, paint
from tmuxorch.cli.app import common_options, complete_removed, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core import view
from tmuxorch.errors import UsageError
from tmuxorch.model import HistoryEntry, Reason
from tmuxorch.service.removal.history import matching

_SPAN = re.compile(r"(\d+)([smhdw])")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.command("history")
@click.argument("search", nargs=-1, shell_complete=complete_removed)
@click.option("-n", "limit", type=click.IntRange(min=1), default=50, help="At most N rows.")
@click.option("--reason", type=click.Choice([r.value for r in Reason]), help="Only those.")
@click.option("--since", metavar="WHEN", help="Removed since: 3h, 2d, 1w or 2026-01-31.")
@json_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    search: tuple[str, ...],
    limit: int,
    reason: str | None,
    since: str | None,
    as_json: bool,
) -> int:
    """List removed workers, newest first; the one whose name or id SEARCH is, in full.

    SEARCH looks for the beginnings of words in names, tasks, branches and last screens.
    """
    session: Session = ctx.obj
    repo = session.repo_root() if session.repo_path else None
    store = session.ctx.store
    if len(search) == 1 and not as_json:
        named = matching(session.ctx, search[0], repo=repo, whole_names=True)
        if len(named) == 1:
            _show(named[0])
            return 0
    entries = store.history(
        search=" ".join(search),
        repo=repo,
        reason=Reason(reason) if reason else None,
        since=None if since is None else _moment(since),
        limit=limit,
    )
    if as_json:
        print_json([view.history_json(entry) for entry in entries])
    elif entries:
        _list(entries)
    else:
        narrowed = search or reason or since or repo
        session.narrate("no removed workers" + (" match" if narrowed else " yet"))
    return 0


def _moment(when: str) -> float:
    """`2d` ago, or a date or time (UTC unless it says otherwise), as seconds since the epoch."""
    if span := _SPAN.fullmatch(when):
        return time.time() - int(span[1]) * _UNIT_S[span[2]]
    try:
        moment = datetime.fromisoformat(when)
    except ValueError:
        raise UsageError(f"--since takes 3h, 2d, 1w or 2026-01-31, not {when!r}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _list(entries: list[HistoryEntry]) -> None:
    now = time.time()
    rows = [("REASON", "NAME", "AGENT", "AGO", "TOOK", "CHANGES", "SAVED", "TASK")]
    for e in entries:
        changes = "" if e.files_changed is None else f"+{e.insertions} -{e.deletions}"
        ago, took = view.age(now - e.removed_at), view.age(e.duration_s)
        task = e.task.text.partition("\n")[0]
        rows.append((e.reason, e.task.name, e.task.agent, ago, took, changes, _saved(e), task))
    output.paint(paint.table(rows, colours=output.wants_colour(sys.stdout)))


def _saved(entry: HistoryEntry) -> str:
    if entry.restored_at is not None:
        return "restored"
    return "work" if entry.salvage_ref else ("branch" if entry.branch_kept else "")


def _show(e: HistoryEntry) -> None:
    """Everything that is known of one."""
    changes = "unknown"
    if e.files_changed is not None:
        changes = f"{e.commits} commits, {e.files_changed} files, +{e.insertions} -{e.deletions}"
    kept = "kept" if e.branch_kept else "not kept: it held nothing of its own"
    rows = [
        ("name", e.task.name),
        ("id", e.task.id),
        ("repository", e.task.repo),
        ("agent", e.task.agent),
        ("removed", f"{view.iso(e.removed_at)}, reason: {e.reason}"),
        ("made", f"{view.iso(e.task.created_at)}, it took {view.age(e.duration_s)}"),
        ("ended with", "-" if e.exit is None else view.describe_exit(e.exit)),
        ("branch", f"{e.task.branch} ({kept})"),
        ("base", f"{e.task.base} {e.task.base_commit}".strip()),
        ("head", e.head_commit or "-"),
        ("changes", changes),
        ("saved as", e.salvage_ref or "-"),
        ("archive", e.archive or "-"),
        ("conversation", e.task.conversation or "-"),
        ("restored", view.iso(e.restored_at) or f"-  (tmuxorch restore {e.task.id})"),
        *(("task" if n == 0 else "", line) for n, line in enumerate(e.task.text.split("\n"))),
    ]
    sys.stdout.write(paint.table(rows, colours=False, width=0))
    if e.last_screen:
        sys.stdout.write(f"\nits last screen:\n{e.last_screen}\n")
