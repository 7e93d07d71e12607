"""What an agent's screen and the title of its window say, and in which words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tmuxorch.config.profiles import Profile
from tmuxorch.model import Status

# Far wider than terminals are. A pattern of a person's own may take quadratic time.
LINE_MAX = 1000
_NOWHERE = -1
_FRAME = " \t\xa0│┃║|"


@dataclass(frozen=True, slots=True)
class Said:
    """A status, and the line that it was read from."""

    status: Status
    line: str


def read_screen(profile: Profile, lines: Sequence[str]) -> Said | None:
    """What the screen says, None if it says nothing.

    What stands lowest is newest: a question above a busy line has been answered, one above a
    prompt too, or was only quoted. Two exceptions: an agent that works may show its empty prompt
    below all the same, and the answers to the question of trust may look like a prompt, though
    not like an input box in its frame.
    """
    text = "\n".join(_last_lines(lines, profile.region))
    rows = text.split("\n")
    trust = _lowest(profile.trust, text)
    question = max(trust, _lowest(profile.waiting, text))
    busy = _lowest(profile.busy, text)
    box = _lowest(profile.box, text)
    ready = max(box, _lowest(profile.ready, text))
    if busy > question:
        return Said(Status.WORKING, rows[busy].strip(_FRAME))
    if question > _NOWHERE and (trust > box or question >= ready):
        return Said(Status.WAITING, rows[question].strip(_FRAME))
    return Said(Status.IDLE, rows[ready].strip(_FRAME)) if ready > _NOWHERE else None


def read_title(profile: Profile, title: str) -> Said | None:
    """What the title says, which the program itself has set; None if it says nothing."""
    found = (
        (Status.WAITING, profile.title_waiting),
        (Status.WORKING, profile.title_busy),
        (Status.IDLE, profile.title_idle),
    )
    for status, pattern in found:
        if pattern and _compiled(pattern).search(title[:LINE_MAX]):
            return Said(status, title.strip())
    return None


def _last_lines(lines: Sequence[str], count: int) -> list[str]:
    """The end of the screen with so many lines that are not blank, cut to a sane length."""
    found: list[str] = []
    for line in reversed(lines):
        is_blank = not line or line.isspace()
        count -= not is_blank
        if count < 0:
            break
        if found or not is_blank:
            found.append("" if is_blank else line[:LINE_MAX].rstrip())
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
