"""What the right side says while no agent is listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxorch.tui.lines import Plain, TextLine

if TYPE_CHECKING:
    from tmuxorch.tui.snapshot import Snapshot


def welcome_lines(snapshot: Snapshot, *, words: str, repo: str | None) -> list[TextLine]:
    """Why there is none, and what a newcomer may press."""
    if not snapshot.loaded:
        return [Plain("")]
    if words:
        return [Plain(f"no agent fits \u201c{words}\u201d; Esc shows all again", "label")]
    hidden = len(snapshot.rows)
    if hidden:
        others = [Plain(f"a shows the {hidden} in other repositories", "label")]
        return [Plain("No agents in this repository.", "strong"), Plain(""), *others]
    if repo is None:
        return [
            Plain("No agents yet, and this is no git repository.", "strong"),
            Plain(""),
            Plain("q      quits; then start tmuxorch inside a repository"),
            Plain("       or try `tmuxorch demo`: six scripted agents, nothing stays"),
        ]
    return [
        Plain("No agents yet.", "strong"),
        Plain(""),
        Plain("n      gives one a task: it gets a branch, a worktree and a window of its own"),
        Plain("?      shows all keys"),
        Plain("q      quits; agents go on without this screen"),
        Plain(""),
        Plain("`tmuxorch demo` shows six scripted agents in a throw-away repository", "label"),
    ]
