"""`tmuxorch` without a verb: the screen."""

from __future__ import annotations

import os

from tmuxorch import paths
from tmuxorch.adapters.gitdir import locate
from tmuxorch.tui.setting import Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmuxorch.cli.session import Session


def open_screen(session: Session | None = None) -> int:
    """Open it on the repository of this call, or on all outside one."""
    from tmuxorch.tui.app import run

    name = session.socket_name if session else None
    path = session.socket_path if session else None
    cwd = os.getcwd()
    found = locate(cwd)
    repo = session.repo_root() if session else (found.root if found else None)
    return run(
        Setting(
            environ=dict(os.environ),
            socket=paths.socket_path(os.environ, name, path),
            repo=repo,
            cwd=cwd,
        )
    )
