"""What the reader saw, as values that pass from its thread to the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tmuxorch.model import Agent, AgentId, Exit, State, Status
from tmuxorch.tui.lines import TextLine


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent as recorded, and what a fresh look makes of it."""

    agent: Agent
    state: State
    status: Status
    exit: Exit | None

    @property
    def id(self) -> AgentId:
        return self.agent.task.id

    @property
    def ended(self) -> bool:
        return self.state in (State.EXITED, State.LOST)


@dataclass(frozen=True, slots=True)
class Changes:
    """How much an agent has written since its base."""

    insertions: int
    deletions: int

    def __str__(self) -> str:
        if not (self.insertions or self.deletions):
            return ""
        return f"+{_short(self.insertions)} \u2212{_short(self.deletions)}"


@dataclass(frozen=True, slots=True)
class WatcherSeen:
    """The watcher as the header tells of it; `known` is False before the first look."""

    known: bool
    alive: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All agents at one moment; `trouble` is a sentence if the look itself went wrong.

    After a failed look the rows are those of the last good one: not knowing is no news.
    """

    rows: tuple[AgentRow, ...] = ()
    watcher: WatcherSeen = WatcherSeen(known=False, alive=False)
    trouble: str = ""
    loaded: bool = False


class Tab(StrEnum):
    SCREEN = "screen"
    DIFF = "diff"
    TIMELINE = "timeline"
    HEALTH = "health"


@dataclass(frozen=True, slots=True)
class Focus:
    """What the person looks at."""

    row: AgentRow | None
    tab: Tab


@dataclass(frozen=True, slots=True)
class Panel:
    """What one look showed."""

    id: AgentId
    tab: Tab
    lines: Sequence[TextLine]
    changes: Changes | None = None


def _short(number: int) -> str:
    return str(number) if number < 10_000 else f"{number // 1000}k"
