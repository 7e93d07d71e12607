"""The help, made from the bindings that are in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from textwrap import wrap

from textual.app import App
from textual.keys import _character_to_key

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


def help_lines(app: App[None], changed: Mapping[str, str]) -> list[TextLine]:
    """Every key with what it does; `changed` are the keys that the config gives to actions."""
    bindings = {binding.id: binding for binding in keys.BINDINGS if binding.id}
    lines: list[TextLine] = []
    for title, names in _GROUPS:
        lines.append(Plain(title, "strong"))
        for name in names:
            binding = bindings[name]
            pressed = changed.get(name, binding.key).split(",")
            shown = [app.get_key_display(replace(binding, key=_spelled(key))) for key in pressed]
            lines.append(Fact(" ".join(shown), binding.description, indent=14))
        lines.append(Plain(""))
    return [
        *lines,
        Fact("1 \u2026 9", "the first nine agents", indent=14),
        Plain(""),
        Plain("With marked agents, send, stop, restart and remove mean all of them.", "label"),
        Plain("Other keys: [keys] in the configuration, by these names:", "label"),
        *(Plain(f"  {line}", "label") for line in wrap(", ".join(sorted(bindings)), 72)),
    ]


def _spelled(key: str) -> str:
    """As Textual spells it: `question_mark` for `?`."""
    key = key.strip()
    return _character_to_key(key) if len(key) == 1 else key
