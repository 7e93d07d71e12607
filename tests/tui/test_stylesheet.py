"""Every rule of the stylesheet is for something that there is."""

from __future__ import annotations

import re
from pathlib import Path

from textual.dom import DOMNode

import tmuxorch.tui
from tmuxorch.tui import app, preload

TUI = Path(tmuxorch.tui.__file__).parent


def kinds(base: type[DOMNode]) -> set[str]:
    found = {base.__name__}
    for below in base.__subclasses__():
        found |= kinds(below)
    return found


def test_every_rule_names_a_widget_and_an_id_that_exist() -> None:
    assert app
    assert preload
    rules = re.sub(r"/\*.*?\*/|\{.*?\}", " ", (TUI / "tmuxorch.tcss").read_text(), flags=re.DOTALL)
    source = "\n".join(path.read_text() for path in TUI.rglob("*.py"))
    assert set(re.findall(r"(?<![.#\w-])[A-Z]\w+", rules)) - kinds(DOMNode) == set()
    for name in set(re.findall(r"#([\w-]+)", rules)):
        assert f'id="{name}"' in source, f"#{name}"
    for name in set(re.findall(r"\.([a-z][\w-]*)", rules)) - {"-narrow"}:
        assert f'"{name}' in source or f" {name}" in source, f".{name}"
