"""Lending the terminal to another program: a tmux client, a shell."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from textual.app import App, SuspendNotSupported


class Terminal(Protocol):
    def lend(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        cwd: str | None = None,
        keep_errors: bool = False,
    ) -> str:
        """Run the program on the terminal until it ends; a sentence if it could not.

        `keep_errors`: what it writes to stderr is that sentence if it fails, and is not shown; a
        shell prompts there.
        """


class RealTerminal:
    """Steps aside, runs the program, comes back where it was."""

    def __init__(self, app: App[None]) -> None:
        self._app = app

    def lend(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        cwd: str | None = None,
        keep_errors: bool = False,
    ) -> str:
        stderr = subprocess.PIPE if keep_errors else None
        try:
            with self._app.suspend():
                # What is raised in this block would leave the screen suspended for ever.
                said = _run(argv, environ, cwd, stderr)
                _come_to_front()
        except SuspendNotSupported:
            return "this terminal cannot be lent to another program"
        return said


def _run(
    argv: Sequence[str], environ: Mapping[str, str], cwd: str | None, stderr: int | None
) -> str:
    try:
        done = subprocess.run(list(argv), env=dict(environ), cwd=cwd, check=False, stderr=stderr)
    except (OSError, ValueError) as e:
        return f"{argv[0]} cannot be run: {e}"
    said = (done.stderr or b"").decode("utf-8", "replace").strip()
    return said if done.returncode and said else ""


def _come_to_front() -> None:
    """A shell that was killed leaves its own group in front, and would stop us when we draw."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        with suppress(OSError):
            os.tcsetpgrp(0, os.getpgrp())
    finally:
        signal.signal(signal.SIGTTOU, before)
