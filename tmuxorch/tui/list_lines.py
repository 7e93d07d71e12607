"""Which lines the list shows: pure, from a snapshot and what the person chose to see."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tmuxorch.core import view
from tmuxorch.core.literal import literal
from tmuxorch.model import AgentId, Status
from tmuxorch.tui.snapshot import AgentRow, Changes

# A sign for those who cannot tell the colours apart; each is one cell wide.
SIGNS = {
    Status.STARTING: "\u25cc",
    Status.WORKING: "\u25cf",
    Status.WAITING: "\u25c6",
    Status.IDLE: "\u25cb",
    Status.DONE: "\u2713",
    Status.STOPPED: "\u25a0",
    Status.CRASHED: "\u2717",
    Status.ENDED: "\u25a1",
    Status.STRAY: "\u2248",
    Status.LOST: "\u2205",
    Status.UNKNOWN: "?",
    Status.REMOVING: "\u2026",
    Status.QUARANTINED: "!",
}
# The order of the counts in the header: what needs the person first.
COUNTED = (
    Status.WAITING,
    Status.CRASHED,
    Status.QUARANTINED,
    Status.ENDED,
    Status.LOST,
    Status.STRAY,
    Status.UNKNOWN,
    Status.WORKING,
    Status.STARTING,
    Status.IDLE,
    Status.DONE,
    Status.STOPPED,
    Status.REMOVING,
)


@dataclass(frozen=True, slots=True)
class Heading:
    """The line above a repository's agents."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Line:
    """One agent's line, as the words that stand in it."""

    id: AgentId
    status: Status
    word: str
    name: str
    agent: str
    age: str
    changes: str
    marked: bool


ListLine = Heading | Line


def visible_rows(rows: Iterable[AgentRow], *, repo: str | None, words: str) -> list[AgentRow]:
    """The rows to show in their order: by repository, waiting ones first, then the oldest."""
    wanted = [row for row in rows if repo is None or row.agent.task.repo == repo]
    terms = words.lower().split()
    wanted = [row for row in wanted if all(term in _searched(row) for term in terms)]
    return sorted(wanted, key=_place)


def _place(row: AgentRow) -> tuple[str, str, bool, float, str]:
    agent = row.agent
    waits = row.status is Status.WAITING
    return (
        os.path.basename(agent.task.repo),
        agent.task.repo,
        not waits,
        agent.task.created_at,
        agent.task.id,
    )


def _searched(row: AgentRow) -> str:
    agent = row.agent
    parts = (
        agent.task.name,
        agent.task.text,
        agent.task.agent,
        agent.task.branch,
        agent.task.repo,
        row.status.value,
    )
    return " ".join(parts).lower()


def lines_of(
    rows: Sequence[AgentRow],
    *,
    now: float,
    marked: Collection[AgentId],
    doing: Mapping[AgentId, str],
    changes: Mapping[AgentId, Changes],
    headings: bool,
) -> list[ListLine]:
    """The list's lines for rows in their order; `doing` has words for what is done to one."""
    counts = Counter(row.agent.task.repo for row in rows)
    lines: list[ListLine] = []
    above = None
    for row in rows:
        agent = row.agent
        if headings and agent.task.repo != above:
            above = agent.task.repo
            lines.append(Heading(literal(os.path.basename(above) or above), counts[above]))
        changed = changes.get(row.id)
        lines.append(
            Line(
                id=row.id,
                status=row.status,
                word=doing.get(row.id) or row.status.value,
                name=literal(agent.task.name),
                agent=literal(agent.task.agent),
                age=view.age(now - agent.task.created_at),
                changes=str(changed) if changed else "",
                marked=row.id in marked,
            )
        )
    return lines


def count_statuses(rows: Iterable[AgentRow]) -> list[tuple[Status, int]]:
    """How many there are of each status that occurs, what needs the person first."""
    counts = Counter(row.status for row in rows)
    return [(status, counts[status]) for status in COUNTED if counts[status]]
