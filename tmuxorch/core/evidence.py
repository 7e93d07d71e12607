"""What an agent is doing, judged by all that tells of it: the one answer of every surface.

In this order: the report of the program's own hook, the title of its window, the lines of its
screen, the time of its last output. A report lapses when what came later contradicts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tmuxorch.config.profiles import Profile
from tmuxorch.core.question import read_question
from tmuxorch.core.screen import Said, read_screen, read_title
from tmuxorch.model import Question, Status

# A program runs its hook before or after it draws what the hook is about, and tmux tells the time
# of output in whole seconds.
REDRAWN_S = 2.0
SEEN_S = 1.0  # for what is so now, whenever it was drawn: a title, an open question
WORKING_S = 10.0  # output this recent counts as work where nothing else is known
SPINNING_S = 3.0  # what says on a screen that it works moves at least so often


class Source(StrEnum):
    HOOK = "hook"
    TITLE = "title"
    SCREEN = "screen"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen of an agent at `now`: its last report, its title, its screen.

    All times are on one scale; `drawn_at` is that of the last output.
    """

    now: float
    drawn_at: float
    title: str = ""
    lines: Sequence[str] = ()
    reported: Status | None = None
    reported_at: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says, None if nothing, since when, and the words it was read from."""

    source: Source
    status: Status | None
    at: float | None
    line: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What it does, which source decided, what each of them said, and what it asks."""

    status: Status
    by: Source
    evidence: tuple[Evidence, ...]
    question: Question | None = None


def judge(profile: Profile | None, sight: Sight) -> Judgement:
    """Weigh what was seen; a command without a profile has neither title nor screen to read."""
    titled = read_title(profile, sight.title) if profile else None
    drawn = read_screen(profile, sight.lines) if profile else None
    printed = Status.WORKING if sight.now - sight.drawn_at <= WORKING_S else Status.IDLE
    ago_s = max(0.0, sight.now - sight.drawn_at)
    evidence = (
        Evidence(Source.HOOK, sight.reported, sight.reported_at, ""),
        _heard(Source.TITLE, titled, sight.now, sight.title),
        _heard(Source.SCREEN, drawn, sight.drawn_at, ""),
        Evidence(Source.OUTPUT, printed, sight.drawn_at, f"last output {ago_s:.0f} s ago"),
    )
    status, by = _decide(sight, titled, drawn, printed)
    question = None
    if status is Status.WAITING and profile:
        question = read_question(sight.lines, drawn.line if drawn else sight.title)
    return Judgement(status, by, evidence, question)


def _heard(source: Source, said: Said | None, at: float, otherwise: str) -> Evidence:
    if said is None:
        return Evidence(source, None, at, otherwise.strip())
    return Evidence(source, said.status, at, said.line)


def _decide(
    sight: Sight, titled: Said | None, drawn: Said | None, printed: Status
) -> tuple[Status, Source]:
    seen = _seen(sight, titled, drawn)
    if sight.reported is None or sight.reported_at is None:
        return seen or (printed, Source.OUTPUT)
    if seen is not None and _has_lapsed(sight, sight.reported_at, seen, drawn):
        return seen
    return sight.reported, Source.HOOK


def _has_lapsed(
    sight: Sight, reported_at: float, seen: tuple[Status, Source], drawn: Said | None
) -> bool:
    """No hook runs when a person interrupts an agent, and many have one for the end alone."""
    status, source = seen
    # A title of rest says that it does not work, not that it asks nothing.
    is_told = source is Source.TITLE and {status, sight.reported} != {Status.IDLE, Status.WAITING}
    if status is Status.WAITING or is_told:
        return sight.now > reported_at + SEEN_S
    return drawn is not None and sight.drawn_at > reported_at + REDRAWN_S


def _seen(sight: Sight, titled: Said | None, drawn: Said | None) -> tuple[Status, Source] | None:
    """What title and screen say together.

    A question on the screen is one whatever the title says, for its words may be older. A title
    of rest is also that of a question, and of programs that never change it while they work.
    """
    if titled is None:
        return (drawn.status, Source.SCREEN) if drawn else None
    if drawn is not None and titled.status is not Status.WAITING:
        is_spinning = sight.now - sight.drawn_at <= SPINNING_S
        if drawn.status is Status.WAITING:
            return drawn.status, Source.SCREEN
        if drawn.status is Status.WORKING and titled.status is Status.IDLE and is_spinning:
            return drawn.status, Source.SCREEN
    return titled.status, Source.TITLE
