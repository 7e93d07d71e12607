"""The way to an agent's window: switch within its tmux server, or take the terminal."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch.errors import TmuxFailed
from tmuxorch.service.workers.visibility import find_pane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tmuxorch.adapters.tmux.server import Tmux
    from tmuxorch.model import Agent, PaneId
    from tmuxorch.service.context import Context


@dataclass(frozen=True, slots=True)
class Takeover:
    """A program that is to have the terminal, and its environment."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]


def switch_or_take(ctx: Context, agent: Agent, *, read_only: bool = False) -> Takeover | None:
    """Switch this terminal's tmux client to the agent's window, or say what to run instead.

    None: it was switched. `NotRunning` if the agent has no window.
    """
    pane = find_pane(ctx, agent).place.pane
    tmux = ctx.tmux(agent.run.socket)
    flag = ["-r"] if read_only else []
    if is_inside(ctx.environ, agent.run.socket):
        client = _own_client(ctx.environ, tmux)
        tmux.run("switch-client", *flag, *(["-c", client] if client else []), "-t", pane)
        return None
    # In another server's window $TMUX would make tmux refuse to nest.
    environ = {k: v for k, v in ctx.environ.items() if k not in ("TMUX", "TMUX_PANE")}
    argv = (tmux.program, "-u", "-S", agent.run.socket, "attach-session", *flag, "-t", str(pane))
    return Takeover(argv, environ)


def say_way_back(ctx: Context, agent: Agent, pane: PaneId | None) -> None:
    """Put a line on the status bar of the client that shows the pane."""
    tmux = ctx.tmux(agent.run.socket)
    client = _client_of(tmux, pane) if pane else None
    if not client:
        return
    hint = ("-d", "4000", "prefix L goes back to tmuxorch")
    try:
        tmux.run("display-message", "-c", client, *hint)
    except TmuxFailed:  # before tmux 3.3 it goes to the client used last, and -c takes no name
        with suppress(TmuxFailed):
            tmux.run("display-message", *hint)


def is_inside(environ: Mapping[str, str], socket: str) -> bool:
    """Is this terminal a window of that very server?"""
    current = environ.get("TMUX", "").partition(",")[0]
    if not current or not os.path.exists(current) or not os.path.exists(socket):
        return False
    return os.path.samefile(current, socket)


def _own_client(environ: Mapping[str, str], tmux: Tmux) -> str | None:
    """The client that shows our pane; without it tmux guesses the one used last."""
    pane = environ.get("TMUX_PANE", "")
    return _client_of(tmux, pane) if pane.startswith("%") else None


def _client_of(tmux: Tmux, pane: str) -> str | None:
    try:
        lines = tmux.run(
            "list-clients", "-t", pane, "-F", "#{client_activity} #{client_name}"
        ).splitlines()
    except TmuxFailed:
        return None
    return max(lines).partition(" ")[2] if lines else None
