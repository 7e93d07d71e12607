"""Lending the terminal to another program: a tmux client, a shell."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

from textual.app import App, SuspendNotSupported


class Terminal(Protocol):
    def lend(
        self, argv: Sequence[str], environ: Mapping[str, str], *, cwd: str | None = None
    ) -> str:
        """Run the program on the terminal until it ends; a sentence if it could not."""


class RealTerminal:
    """Steps aside, runs the program, comes back where it was."""

    def __init__(self, app: App[None]) -> None:
        self._app = app

    def lend(
        self, argv: Sequence[str], environ: Mapping[str, str], *, cwd: str | None = None
    ) -> str:
        # A shell prompts on stderr; of tmux it holds why it could not attach.
        stderr = subprocess.PIPE if "attach-session" in argv else None
        try:
            with self._app.suspend():
                done = subprocess.run(
                    list(argv), env=dict(environ), cwd=cwd, check=False, stderr=stderr
                )
        except SuspendNotSupported:
            return "this terminal cannot be lent to another program"
        except OSError as e:
            return f"{argv[0]} cannot be run: {e.strerror}"
        said = (done.stderr or b"").decode("utf-8", "replace").strip()
        return said if done.returncode and said else ""
