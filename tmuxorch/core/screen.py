"""What an agent is doing, read off the last lines of its screen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from tmuxorch.config.profiles import Profile
from tmuxorch.model import Status

# Far wider than terminals are. A pattern of a person's own may take quadratic time.
LINE_MAX = 1000
# A program runs its hook before or after it draws what the hook is about.
REDRAWN_S = 2.0
_NOWHERE = -1


def read_status(profile: Profile, lines: Sequence[str]) -> Status | None:
    """What the screen says, None if it says nothing.

    What stands lowest is newest: a question above a busy line has been answered, one above a
    prompt too, or was only quoted. Two exceptions: an agent that works may show its empty prompt
    below all the same, and the answers to the question of trust may look like a prompt.
    """
    text = "\n".join(_last_lines(lines, profile.region))
    trust = _lowest(profile.trust, text)
    question = max(trust, _lowest(profile.waiting, text))
    busy = _lowest(profile.busy, text)
    ready = _lowest(profile.ready, text)
    if busy > question:
        return Status.WORKING
    if question > _NOWHERE and (trust > _NOWHERE or question >= ready):
        return Status.WAITING
    return Status.IDLE if ready > _NOWHERE else None


def settle_status(
    reported: Status | None, reported_at: float | None, seen: Status | None, activity_at: float
) -> Status | None:
    """What counts of an agent's own report and its screen, last drawn at `activity_at`.

    A report counts until the screen has moved on and says something else: no hook runs when a
    person interrupts an agent, and many have a hook for the end of their work alone.
    """
    if reported is None or reported_at is None:
        return seen
    moved_on = activity_at > reported_at + REDRAWN_S
    return seen if moved_on and seen is not None else reported


def _last_lines(lines: Sequence[str], count: int) -> list[str]:
    """The last `count` lines that are not blank, cut to a sane length."""
    found: list[str] = []
    for line in reversed(lines):
        if len(found) == count:
            break
        if line and not line.isspace():
            found.append(line[:LINE_MAX])
    return found[::-1]


def _lowest(pattern: str, text: str) -> int:
    """The number of the lowest line that a match ends in."""
    last = None
    for match in _compiled(pattern).finditer(text) if pattern else ():
        last = match
    if last is None:
        return _NOWHERE
    # A pattern may take in the line break after it.
    return text.count("\n", 0, last.start() + len(last[0].rstrip()))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
