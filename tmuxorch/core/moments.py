"""Time that nobody can set: how long ago something happened, though only a wall clock says when.

A stamp of the wall clock is believed only between two looks. It is placed on a scale of our own,
which takes no part in jumps of the wall clock, and stays there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxorch.errors import sure

if TYPE_CHECKING:
    from collections.abc import Hashable

# Further apart than this, wall and monotonic clock disagree because one was set, or the machine
# slept; less is the wall clock being put right bit by bit.
JUMP_S = 5.0


class Moments:
    """A scale of seconds with what happened on it, kept by whoever looks again and again."""

    def __init__(self) -> None:
        self.now = 0.0
        self._clocks: tuple[float, float] | None = None
        self._placed: dict[Hashable, tuple[float, float, float]] = {}

    def look(self, wall: float, monotonic: float) -> None:
        """Go on to the present."""
        if self._clocks is not None:
            by_wall, passed_s = wall - self._clocks[0], monotonic - self._clocks[1]
            self.now += by_wall if abs(by_wall - passed_s) <= JUMP_S else passed_s
        self._clocks = wall, monotonic

    def place(self, what: Hashable, stamp: float) -> float:
        """When it happened, on our scale; a new stamp is not older than the last look at it."""
        wall, _ = sure(self._clocks, "a look comes first")
        last, at, looked = self._placed.get(what, (None, 0.0, None))
        if stamp != last:
            ago_s = max(0.0, wall - stamp)
            at = self.now - (ago_s if looked is None else min(ago_s, self.now - looked))
        self._placed[what] = stamp, at, self.now
        return at

    def forget(self, what: Hashable) -> None:
        self._placed.pop(what, None)
