"""Asking a person whether a repository's own file may act."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tmuxorch import config as configuration
from tmuxorch.cli.output import ask
from tmuxorch.core.literal import literal
from tmuxorch.errors import NotTrusted

if TYPE_CHECKING:
    from tmuxorch.cli.session import Session
    from tmuxorch.config import RepoFile

# Comparing takes a time that grows with the square of the length.
_COMPARED_MAX_LINES = 1000


def ask_trust(session: Session, repo_root: str, *, yes: bool = False) -> None:
    """Show the file as it is, ask, and remember the answer for exactly that content.

    Raises NotTrusted without a person to ask, unless `yes` was said beforehand, and for an
    agent: what it could write into the file must not be trusted by itself.
    """
    settings = session.ctx.settings
    file = configuration.read_repo_file(repo_root)
    if not file.content:
        raise NotTrusted(f"{file.path} is not there or empty: there is nothing to trust")
    if os.environ.get("TMUXORCH_AGENT_ID"):
        raise NotTrusted(
            f"{file.path} cannot be trusted from inside an agent's window; "
            "do that in a terminal of your own"
        )
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotTrusted(
            f"{file.path} can copy your files and run commands: a person has to look at it, "
            "with `tmuxorch config --trust` in a terminal (-y, if you have)"
        )
    if not session.quiet or not yes:
        sys.stderr.write(_told(file, settings.trusted_text(file)))
    if not yes and not ask("Do you trust it?"):
        raise NotTrusted(f"{file.path} is not trusted, and nothing was done")
    settings.trust(file)


def _told(file: RepoFile, before: str | None) -> str:
    """The text, and what has changed in it since it was trusted last."""
    what = f"{literal(file.path)} can copy your files and run commands in every new worktree"
    lines = file.text.split("\n")
    old = (before or "").split("\n")
    if before is None or max(len(lines), len(old)) > _COMPARED_MAX_LINES:
        return f"{what}:\n\n{file.text.rstrip()}\n\n"
    import difflib

    names = ("when you trusted it", "now")
    changes = "\n".join(difflib.unified_diff(old, lines, *names, lineterm=""))
    return (
        f"{what}:\n\n{file.text.rstrip()}\n\n"
        f"What has changed since you trusted it:\n\n{changes or 'nothing'}\n\n"
    )
