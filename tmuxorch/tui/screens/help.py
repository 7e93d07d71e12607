"""The help, made from the commands and the keys that are in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

from textual.app import App
from textual.binding import Binding
from textual.keys import _character_to_key

from tmuxorch.tui.command import Command, Group
from tmuxorch.tui.lines import Fact, Plain, TextLine


def help_lines(
    app: App[None], commands: Sequence[Command], changed: Mapping[str, str]
) -> list[TextLine]:
    """Every key with what it does; `changed` are the keys that the config gives to commands."""
    lines: list[TextLine] = []
    for group in Group:
        listed = [command for command in commands if command.group is group]
        lines.append(Plain(group.value, "strong"))
        if group is Group.NUMBERS:
            first, last = listed[0], listed[-1]
            keys = " \u2026 ".join(_shown(app, command, changed) for command in (first, last))
            lines.append(Fact(keys, first.help, indent=14))
        else:
            lines += [
                Fact(_shown(app, command, changed), command.help, indent=14) for command in listed
            ]
        lines.append(Plain(""))
    many = [command.words for command in commands if command.many]
    names = wrap(", ".join(sorted(command.name for command in commands)), 72)
    return [
        *lines,
        Plain(f"With marked agents, {_listed(many)} mean all of them.", "label"),
        Plain("Other keys: [keys] in the configuration, by these names:", "label"),
        *(Plain(f"  {line}", "label") for line in names),
    ]


def _shown(app: App[None], command: Command, changed: Mapping[str, str]) -> str:
    keys = changed.get(command.name, command.keys).split(",")
    return " ".join(app.get_key_display(Binding(_spelled(key), "", "")) for key in keys)


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _spelled(key: str) -> str:
    """As Textual spells it: `question_mark` for `?`."""
    key = key.strip()
    return _character_to_key(key) if len(key) == 1 else key
