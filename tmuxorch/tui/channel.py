"""One way to each tmux server for the looker's many small questions."""

from __future__ import annotations

from collections.abc import Callable

from tmuxorch.adapters.tmux import Tmux

Run = Callable[..., str]


class Channels:
    """Opened on first use; a server that went away is asked anew the next time."""

    def __init__(self) -> None:
        self._open: dict[str, Tmux] = {}

    def get(self, socket: str, timeout_s: float) -> Run:
        if socket not in self._open:
            self._open[socket] = Tmux(socket, timeout_s=timeout_s)
        return self._open[socket].run

    def close(self) -> None:
        self._open.clear()
