"""Work for services, each piece in a thread of its own with a context of its own.

The threads are no daemons: quitting in the middle of a removal lets it finish. What a person
asked for neither waits for a free thread nor is tried again, unlike the watcher's work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from textual.message import Message

from tmuxorch.errors import TmuxorchError
from tmuxorch.model import AgentId

if TYPE_CHECKING:
    from tmuxorch.core.progress import Phase
    from tmuxorch.service.context import Context

T = TypeVar("T")
Progress = Callable[[AgentId, "Phase"], None]


@dataclass
class JobStepped(Message):
    """What is being done to an agent now."""

    agent_id: AgentId
    phase: Phase


@dataclass
class JobDone(Message):
    """It is done (or failed with a sentence); `then` wants the result."""

    ids: Sequence[AgentId]
    result: Any
    failure: str
    then: Callable[[Any], object] | None


class Jobs:
    """Starts work and posts how it went."""

    def __init__(
        self,
        open_context: Callable[[Progress], Context],
        post: Callable[[Message], object],
    ) -> None:
        self._open_context = open_context
        self._post = post
        self._running: dict[threading.Thread, str] = {}

    def start(
        self,
        about: str,
        work: Callable[[Context], T],
        *,
        ids: Sequence[AgentId] = (),
        then: Callable[[T], object] | None = None,
    ) -> None:
        """Do `work` elsewhere; `about` says what it is if somebody has to wait for it."""
        thread = threading.Thread(target=self._run, args=(work, tuple(ids), then), name=about)
        self._running[thread] = about
        thread.start()

    def wait(self, say: Callable[[str], object]) -> None:
        """Wait for what is not finished yet, saying what it is."""
        for thread, about in list(self._running.items()):
            if thread.is_alive():
                say(about)
                thread.join()

    def _run(
        self,
        work: Callable[[Context], T],
        ids: tuple[AgentId, ...],
        then: Callable[[T], object] | None,
    ) -> None:
        result: T | None = None
        failure = ""
        try:
            ctx = self._open_context(lambda agent_id, phase: self._step(ids, agent_id, phase))
            try:
                result = work(ctx)
            finally:
                ctx.store.close()
        except TmuxorchError as e:
            failure = e.message
        except Exception as e:  # noqa: BLE001 -- the border: a bug in one job must not end the screen
            failure = f"this is a bug in tmuxorch: {e!r}"
        self._running.pop(threading.current_thread(), None)
        self._post(JobDone(ids, result, failure, then))

    def _step(self, ids: tuple[AgentId, ...], agent_id: AgentId, phase: Phase) -> None:
        if agent_id in ids:
            self._post(JobStepped(agent_id, phase))
