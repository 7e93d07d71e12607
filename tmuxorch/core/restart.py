"""When a persistent agent that died is started again, and when it is given up."""

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
