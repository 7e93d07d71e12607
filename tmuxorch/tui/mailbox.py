"""From a thread to the screen: only the newest value waits, older ones are replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """One value at a time; `ring` is called when there is one where there was none."""

    def __init__(self, ring: Callable[[], object]) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._values: list[T] = []

    def put(self, value: T) -> None:
        with self._lock:
            first = not self._values
            self._values[:] = [value]
        if first:
            self._ring()

    def take(self) -> T | None:
        """The newest value; None if it was taken already."""
        with self._lock:
            return self._values.pop() if self._values else None
