"""`tmuxorch` without a verb: the screen."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tmuxorch import paths
from tmuxorch.errors import NeedsTerminal
from tmuxorch.service.repositories import find_root
from tmuxorch.tui.workplace import Workplace

if TYPE_CHECKING:
    from tmuxorch.cli.session import Session


def open_screen(session: Session | None = None) -> int:
    """Open it on the repository of this call, or on all outside one."""
    from tmuxorch.tui.app import run

    need_terminal("the screen", "`tmuxorch ls` prints the agents")
    paths.state_dir(os.environ)  # refuses before there is a screen to say it on
    name = session.socket_name if session else None
    path = session.socket_path if session else None
    cwd = os.getcwd()
    repo = session.repo_root() if session else find_root(cwd)
    return run(
        Workplace(
            environ=dict(os.environ),
            socket=paths.socket_path(os.environ, name, path),
            repo=repo,
            cwd=cwd,
        )
    )


def need_terminal(what: str, instead: str) -> None:
    """NeedsTerminal unless this is a terminal on which a program can draw."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NeedsTerminal(f"{what} needs a terminal; {instead}")
    kind = os.environ.get("TERM", "")
    if kind in ("", "dumb", "unknown"):
        told = f"TERM says {kind!r}" if kind else "TERM is not set"
        raise NeedsTerminal(f"{what} needs a terminal that it can draw on, and {told}; {instead}")
