"""The rules of the house, as `scripts/house` reads them off the code."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADR = ROOT / "docs" / "adr"


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", ROOT / "scripts" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["house"] = made
    spec.loader.exec_module(made)
    return made


def test_no_module_or_function_is_too_long_and_none_needs_what_needs_it(house: ModuleType) -> None:
    assert house.broken_rules(house.read_modules()) == []


def test_the_architecture_page_shows_the_numbers_of_this_very_code(house: ModuleType) -> None:
    page = house.PAGE.read_text()
    assert house.with_plan(page, house.plan(house.read_modules())) == page, (
        "run scripts/house --write"
    )


def test_no_two_rooms_have_a_class_of_the_same_name(house: ModuleType) -> None:
    assert house.shared_names(house.read_modules()) == {}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"core.a": "import tmuxorch.service.b", "service.b": "x = 1"}, "must not ask"),
        (
            {"core.a": "def f():\n    import tmuxorch.core.b", "core.b": "import tmuxorch.core.a"},
            "need each other: tmuxorch.core.a, tmuxorch.core.b",
        ),
        ({"core.a": "x = 1\n" * 401}, "has 401 lines"),
        ({"core.a": "def f():\n" + "    x = 1\n" * 60}, "has 61 lines"),
    ],
)
def test_a_broken_rule_is_found(
    house: ModuleType, tmp_path: Path, source: dict[str, str], said: str
) -> None:
    for name, text in source.items():
        path = (tmp_path / "tmuxorch").joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n" if not text.endswith("\n") else text)
    broken = house.broken_rules(house.read_modules(tmp_path / "tmuxorch"))
    assert any(said in line for line in broken), broken


def test_the_decisions_are_numbered_without_gaps_and_listed() -> None:
    names = sorted(path.name for path in ADR.glob("[0-9]*.md"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    index = (ADR / "README.md").read_text()
    assert re.findall(r"\]\((\d{4}-[^)]+)\)", index) == names


def test_every_path_that_the_map_and_the_recipes_name_is_there() -> None:
    for page in (ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md"):
        for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|toml|md))`", page.read_text()):
            places = (ROOT / path, ROOT / "tmuxorch" / path, ROOT / "tmuxorch" / "service" / path)
            assert any(place.exists() for place in places), f"{page.name}: {path}"
