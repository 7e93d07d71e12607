"""Sentences about what happened by itself between two snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tmuxorch.core.view import describe_exit
from tmuxorch.model import State, Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tmuxorch.model import AgentId
    from tmuxorch.tui.snapshot import AgentRow, Snapshot

Severity = Literal["information", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Notice:
    sentence: str
    severity: Severity = "information"


def end_notices(before: Snapshot, after: Snapshot, *, own: Collection[AgentId]) -> Iterator[Notice]:
    """One for each agent that ended meanwhile; of `own`, with which something is done, none."""
    earlier = {row.id: row for row in before.rows}
    for row in after.rows:
        known = earlier.get(row.id)
        if known is None or not _ran(known) or _ran(row) or not row.ended:
            continue
        if row.agent.run.stopped or row.id in own:
            continue
        name = row.agent.task.name
        if row.state is State.LOST:
            yield Notice(f"{name} is lost: its tmux server has gone", "warning")
        elif row.status is Status.DONE:
            yield Notice(f"{name} has finished; Enter shows what it left")
        elif row.status is Status.CRASHED:
            yield Notice(f"{name} crashed: {describe_exit(row.exit)}", "warning")


def _ran(row: AgentRow) -> bool:
    """Whether it runs as far as anybody could say; an end is told once its manner is known."""
    return row.state is State.RUNNING or row.status is Status.ENDED
