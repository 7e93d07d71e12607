"""The README's table of keys, made from the commands of the screen."""

from __future__ import annotations

import string
import sys
from itertools import groupby
from pathlib import Path

from textual.keys import _character_to_key

from tmuxorch.tui.commands import COMMANDS, Command, Group

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- keys: made by scripts/keys -->\n", "<!-- /keys -->\n"
CHARACTERS = {_character_to_key(character): character for character in string.punctuation}
NAMES = {"enter": "Enter", "escape": "Esc", "delete": "Delete", "home": "Home", "end": "End",
         "pageup": "PageUp", "pagedown": "PageDown", "up": "Up", "down": "Down"}  # fmt: skip


def table() -> str:
    """A row for each command, and one for all the numbers."""
    rows = ["| key | name | does |", "|---|---|---|"]
    for group, commands in groupby(COMMANDS, key=lambda command: command.group):
        if group is Group.NUMBERS:
            first, *_, last = commands
            keys, names = f"{_keys(first)}\u2013{_keys(last)}", f"`{first.name}`\u2013`{last.name}`"
            rows.append(f"| {keys} | {names} | {first.help} |")
        else:
            rows += [f"| {_keys(c)} | `{c.name}` | {_does(c)} |" for c in commands]
    return "".join(f"{row}\n" for row in rows)


def _keys(command: Command) -> str:
    named = (CHARACTERS.get(key) or NAMES.get(key, key) for key in command.keys.split(","))
    return " ".join(f"`{key}`" for key in named)


def _does(command: Command) -> str:
    return command.help + (" (all marked ones)" if command.many else "")


def main(arguments: list[str]) -> int:
    text = README.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.stderr.write(f"{README} has no place for the keys: {BEGIN.strip()} \u2026 {END}")
        return 1
    made = f"{before}{BEGIN}{table()}{END}{after}"
    if "--check" in arguments:
        if made != text:
            sys.stderr.write(f"the keys in {README} are not those of the screen: scripts/keys\n")
        return int(made != text)
    README.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
