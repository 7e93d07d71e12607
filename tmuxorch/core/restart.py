"""When a persistent agent that died is started again, when it is given up, and with what flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

JITTER = 0.25  # of the delay: many agents that died together do not come back together


@dataclass(frozen=True, slots=True)
class Limits:
    """`limit` deaths within `window_s` are enough; `healthy_s` alive makes up for all of them."""

    limit: int
    window_s: float
    first_delay_s: float
    max_delay_s: float
    healthy_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The deaths that count, this one included, and when to start again: never, if None."""

    deaths: tuple[float, ...]
    restart_at: float | None


def plan_restart(
    deaths: Sequence[float], *, lived_s: float, now: float, limits: Limits, luck: float
) -> Plan:
    """What follows from one more death, now, after `lived_s` alive; `luck` is in 0..1."""
    counted = () if lived_s >= limits.healthy_s else tuple(deaths)
    recent = (*(at for at in counted if now - limits.window_s < at <= now), now)
    if len(recent) >= limits.limit:
        return Plan(recent, None)
    # The exponent is bounded: 2.0 ** 1024 is an error, and no wait is ever that long.
    delay_s = min(limits.max_delay_s, limits.first_delay_s * 2.0 ** min(len(recent) - 1, 60))
    return Plan(recent, now + delay_s * (1 - JITTER + 2 * JITTER * luck))


def carry_flags(
    first: Sequence[str], resume: Sequence[str], *, task: str, conversation: str
) -> tuple[str, ...]:
    """The command `resume` with the program and the options that the first start had.

    Of the first start everything is taken but what named its task and its conversation, and
    what `resume` says itself. A start that was such a resume already gives the same again.
    """
    program, *rest = first
    own = list(resume[1:])
    if own and rest[-len(own) :] == own:
        return tuple(first)
    if "--" in rest:
        del rest[rest.index("--") :]
    kept: list[str] = []
    for word in rest:
        if task and task in word:
            continue
        if conversation and conversation in word:
            if word == conversation and kept and kept[-1].startswith("-"):
                kept.pop()
            continue
        kept.append(word)
    return (program, *kept, *own)
