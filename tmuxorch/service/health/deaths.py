"""Waiting for the end of any of the agents' processes, until somebody else calls."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxorch.adapters.system.wake import Wake
from tmuxorch.model import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tmuxorch.model import Agent, ProcessId


class DeathWatch:
    """For one thread, which waits; only `call` is for others."""

    def __init__(self) -> None:
        self._wake = Wake()
        self._called, self._call = os.pipe()
        self._wake.listen([self._called])
        self._told: set[ProcessId] = set()

    def follow(self, agents: Iterable[Agent]) -> None:
        """Be woken by the end of these agents' processes, once each, and of no others."""
        wanted = {a.run.process for a in agents if a.run.process and a.state is State.RUNNING}
        self._told &= wanted
        self._wake.follow(wanted - self._told)

    def wait(self, timeout_s: float) -> bool:
        """True as soon as one of them has ended, False when the time is over or at a call."""
        ended, _ = self._wake.wait(timeout_s)
        self._told |= ended
        return bool(ended)

    def call(self) -> None:
        """End this wait and all later ones."""
        with suppress(OSError):
            os.write(self._call, b".")

    def close(self) -> None:
        self._wake.close()
        os.close(self._called)
        os.close(self._call)
