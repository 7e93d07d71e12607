"""Where libtmux sees the panes of a server: somebody else's reading of what tmux prints."""

from __future__ import annotations

from tmuxorch.adapters.system.apart import LOOK_S, answer, ask_apart
from tmuxorch.adapters.tmux.server import outside_environment
from tmuxorch.adapters.tmux.sockets import check_socket
from tmuxorch.core.observation import Unknown


def ask_libtmux(socket: str, *, timeout_s: float = LOOK_S) -> dict[str, str] | Unknown:
    """Each pane's id with its window and process, as `describe` puts it; {} is no evidence."""
    check_socket(socket)
    # libtmux parts the fields by a character that tmux prints in a UTF-8 locale only.
    env = {**outside_environment(), "LC_ALL": "C.UTF-8"}
    return ask_apart(__name__, socket, env=env, timeout_s=timeout_s)


def describe(window: str, pid: int | str) -> str:
    return f"{window}, process {pid}"


def _look(socket: str) -> dict[str, str]:
    import libtmux

    panes = libtmux.Server(socket_path=socket).panes
    return {str(p.pane_id): describe(str(p.window_id), str(p.pane_pid)) for p in panes}


if __name__ == "__main__":
    answer(_look)
