"""The help, made from the bindings that are in force."""

from __future__ import annotations

from textual.screen import Screen

from tmuxorch.tui import keys
from tmuxorch.tui.lines import Fact, Plain, TextLine

_GROUPS = (
    ("Agents", ("attach", "new", "send", "stop", "restart", "remove", "undo", "rename", "merge")),
    ("Looking", ("next_tab", "previous_tab", "scroll_down", "scroll_up", "diff", "why", "shell",
                 "history", "sweep")),
    ("The list", ("down", "up", "first", "last", "next_waiting", "mark", "mark_all", "filter",
                  "clear", "everywhere")),
    ("This screen", ("palette", "help", "quit")),
)  # fmt: skip


def help_lines(screen: Screen[None]) -> list[TextLine]:
    """Every key with what it does, as it is configured now."""
    pressed: dict[str, list[str]] = {}
    words: dict[str, str] = {}
    for active in screen._bindings:
        key, binding = active
        if binding.id:
            shown = screen.app.get_key_display(binding)
            pressed.setdefault(binding.id, [])
            if shown not in pressed[binding.id]:
                pressed[binding.id].append(shown)
            words[binding.id] = binding.description
        del key
    lines: list[TextLine] = []
    for title, names in _GROUPS:
        lines += [Plain(title, "strong")]
        lines += [Fact(" ".join(pressed.get(n, ())), words.get(n, ""), indent=14) for n in names
                  if n in words]  # fmt: skip
        lines += [Plain("")]
    lines += [
        Fact("1 \u2026 9", "the first nine agents", indent=14),
        Plain(""),
        Plain("With marked agents, send, stop, restart and remove mean all of them.", "label"),
        Plain("Other keys: [keys] in the configuration, by these names:", "label"),
        Plain("  " + ", ".join(sorted(n for n in keys.NAMES if n)), "label"),
    ]
    return lines
