"""How far an action on an agent is that takes a while."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """What is being done to it now."""

    ENDING = "ending"
    SAVING = "saving"

    def describe(self, name: str) -> str:
        """The same with the agent's name, for those who read along."""
        return f"{self} the work of {name}" if self is Phase.SAVING else f"{self} {name}"
