"""Facts of three kinds: it is there, it is gone, or nobody knows.

Absence and ignorance are different types, so no look that failed can be mistaken
for a thing that is gone. `tmuxorch ls` imports this module: no typing at run time.
"""

from __future__ import annotations

from dataclasses import dataclass

from tmuxorch.model import ProcessId


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
