"""Facts of three kinds: it is there, it is gone, or nobody knows.

Absence and ignorance are different types, so no look that failed can be mistaken
for a thing that is gone. `tmuxorch ls` imports this module: no typing at run time.
"""

from __future__ import annotations

from tmuxorch.model import Exit, Place, ProcessId, Question, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from dataclasses import dataclass

    from tmuxorch.core.stake import StakeFact
else:
    from tmuxorch.values import dataclass


@dataclass(frozen=True, slots=True)
class Unknown:
    """The look itself failed; nothing follows from it, least of all that a thing is gone."""

    why: str


@dataclass(frozen=True, slots=True)
class Alive:
    """This very process runs: not merely one with its pid."""

    process: ProcessId


@dataclass(frozen=True, slots=True)
class Dead:
    """A good look showed that the process has ended for ever."""

    how: str


ProcessFact = Alive | Dead | Unknown


def find_unknown(facts: Iterable[ProcessFact]) -> str | None:
    """Why the first of these is unknown; None if each is known to live or to be dead."""
    return next((fact.why for fact in facts if isinstance(fact, Unknown)), None)


@dataclass(frozen=True, slots=True)
class Started:
    """The shim's word that the agent runs, in which of its runs if that was said."""

    process: ProcessId
    shim: ProcessId
    at: float
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How the agent's process ended; `error` is set if it never ran.

    `at` is what the clock showed, `lived_s` how long it really lived, if that was said.
    """

    exit: Exit | None
    error: str | None
    at: float
    run: int | None = None
    lived_s: float | None = None


@dataclass(frozen=True, slots=True)
class Glance:
    """What a look without tmux shows of a recorded run: all that `ls` knows.

    `shim` and `server` (the tmux server that had the window) are looked at once the process is
    dead, for they tell whether its end is its own; `ended` is the shim's word, Unknown if there
    is one that cannot be read.
    """

    process: ProcessFact | None = None
    shim: ProcessFact | None = None
    server: ProcessFact | None = None
    ended: Ended | Unknown | None = None


@dataclass(frozen=True, slots=True)
class WindowSeen:
    """The pane with the agent's marker; `held` if its root is the very shim of the agent.

    `respawned` if it is another shim that was started for the agent: it has a word to say.
    """

    place: Place
    held: bool
    others: int
    activity_at: float
    respawned: bool = False


@dataclass(frozen=True, slots=True)
class WindowMissed:
    """One good answer without the pane: not yet enough to call it gone."""


@dataclass(frozen=True, slots=True)
class WindowGone:
    """The server that had the pane lives, and in two good answers it was not there."""


@dataclass(frozen=True, slots=True)
class ServerGone:
    """The very tmux server that had the pane has ended, and all its panes with it."""

    how: str


WindowFact = WindowSeen | WindowMissed | WindowGone | ServerGone | Unknown


@dataclass(frozen=True, slots=True)
class Observation:
    """All that one pass saw of an agent.

    None means: nothing to look at (no process recorded, nobody owns it), or, for `stake`,
    that nobody has looked yet. `started` and `ended` are the shim's words about the present
    run, `doing` what a living agent does and `question` what it asks, `dead_for_s` how long its
    death has been known.
    `window` was looked at after `process`, so it tells what is there since a death.
    Of one without a process, `waiting_s` is for how long that has been seen, and `held_for_s`
    how long what holds its pane has run; neither depends on the wall clock.
    """

    window: WindowFact
    process: ProcessFact | None = None
    shim: ProcessFact | None = None
    owner: ProcessFact | None = None
    started: Started | None = None
    ended: Ended | Unknown | None = None
    stake: StakeFact | None = None
    doing: Status = Status.WORKING
    question: Question | None = None
    dead_for_s: float = 0.0
    waiting_s: float = 0.0
    held_for_s: float | None = None
