"""What the watcher does beside its loop: one thing at a time for each agent, and failures later.

Only the loop's own thread calls these methods; what is done runs in threads of its own.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from tmuxorch.errors import TmuxorchError

if TYPE_CHECKING:
    from collections.abc import Callable

HANDS = 4
RETRY_S = (1.0, 300.0)  # the first pause after a failure, and the longest


class Hands:
    """A few threads; `on_done` is called in one of them after each thing."""

    def __init__(self, on_done: Callable[[], None]) -> None:
        self._on_done = on_done
        self._pool = ThreadPoolExecutor(HANDS, thread_name_prefix="hand")
        self._busy: dict[str, Future[None]] = {}
        self._failures: dict[str, tuple[int, float]] = {}

    def begin(self, what: str, do: Callable[[], None]) -> bool:
        """Do it, unless something is being done under that name (an agent's id) already."""
        if what in self._busy:
            return False
        self._busy[what] = self._pool.submit(do)
        self._busy[what].add_done_callback(lambda _: self._on_done())
        return True

    def are_busy(self, what: str | None = None) -> bool:
        return bool(self._busy) if what is None else what in self._busy

    def put_off(self, what: str) -> bool:
        """Whether it failed lately and is to be left in peace for a while."""
        return time.monotonic() < self._failures.get(what, (0, 0.0))[1]

    def collect(self) -> list[BaseException]:
        """Take back what is finished: a failure puts the next try off; the bugs among them."""
        bugs = []
        for what, done in list(self._busy.items()):
            if not done.done():
                continue
            del self._busy[what]
            failure = done.exception()
            if failure is None:
                self._failures.pop(what, None)
                continue
            self.note_failure(what)
            if not isinstance(failure, TmuxorchError | OSError):
                bugs.append(failure)
        return bugs

    def note_failure(self, what: str) -> None:
        """It failed: leave it in peace for a while, and longer each time."""
        tries = self._failures.get(what, (0, 0.0))[0] + 1
        pause_s = min(RETRY_S[1], RETRY_S[0] * 2.0 ** min(tries - 1, 20))
        self._failures[what] = tries, time.monotonic() + pause_s

    def forget_all_but(self, known: set[str]) -> None:
        for gone in self._failures.keys() - known:
            del self._failures[gone]

    def close(self) -> None:
        """Let go; what is under way is carried on by the next watcher."""
        self._pool.shutdown(wait=False, cancel_futures=True)
