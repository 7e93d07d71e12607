"""The recorded agents for those who only look at them: `ls`, the screen, shell completion.

`tmuxorch ls` imports this module: nothing here that it does not need.
"""

from __future__ import annotations

from tmuxorch.adapters.store.records import open_store_for_reading
from tmuxorch.adapters.store.watchfile import observe_watcher
from tmuxorch.service.health.liveness import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from tmuxorch.adapters.store.records import Store
    from tmuxorch.core.observation import Glance
    from tmuxorch.model import Agent


class Listing:
    """What the store of a state directory says, and a fresh look at each agent in it."""

    def __init__(self, state_dir: str, store: Store | None) -> None:
        self._state_dir = state_dir
        self._store = store

    @classmethod
    def open(cls, state_dir: str) -> Self:
        """Nothing is made: where there is no store yet there are no agents."""
        return cls(state_dir, open_store_for_reading(state_dir))

    @property
    def exists(self) -> bool:
        return self._store is not None

    def version(self) -> int:
        """Another number whenever somebody else has written since."""
        return -1 if self._store is None else self._store.data_version()

    def agents(self, *, repo: str | None = None) -> list[Agent]:
        return [] if self._store is None else self._store.agents(repo=repo)

    def removed_names(self, limit: int) -> list[str]:
        """Of the workers removed last."""
        return (
            [] if self._store is None else [e.task.name for e in self._store.history(limit=limit)]
        )

    def look(self, agent: Agent) -> Glance:
        return look(self._state_dir, agent)

    def is_watched(self) -> bool:
        """Whether a watcher lives that keeps the records true."""
        return observe_watcher(self._state_dir).alive

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
