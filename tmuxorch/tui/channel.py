"""One way to each tmux server for the looker's many small questions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tmuxorch.adapters.tmux.control import Control
from tmuxorch.adapters.tmux.server import Tmux
from tmuxorch.errors import TmuxFailed, TmuxorchError

Run = Callable[..., str]
ANSWER_S = 2.0


class Channels:
    """A control channel per server, opened on first use.

    The channel hangs on the home session; where a person has closed that, or the channel has
    broken, the question is asked by a command of its own, and that answer counts.
    """

    def __init__(self) -> None:
        self._open: dict[str, Control] = {}

    def get(self, socket: str, timeout_s: float) -> Run:
        return partial(self._run, socket, min(timeout_s, ANSWER_S))

    def _run(self, socket: str, timeout_s: float, *args: str) -> str:
        with suppress(TmuxFailed):
            if socket not in self._open:
                self._open[socket] = Control(socket, timeout_s=timeout_s)
            return self._open[socket].run(*args)
        self._drop(socket)
        return Tmux(socket, timeout_s=timeout_s).run(*args)

    def _drop(self, socket: str) -> None:
        control = self._open.pop(socket, None)
        if control is not None:
            with suppress(TmuxorchError, OSError):
                control.close()

    def close(self) -> None:
        for socket in list(self._open):
            self._drop(socket)
