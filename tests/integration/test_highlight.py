"""Code gets its colours from a process that may die of a line; nobody waits for it."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from tests.conftest import wait_for
from tmuxorch.tui import lexing
from tmuxorch.tui.highlight import DEATHS_MAX, Highlighter
from tmuxorch.tui.lexing import LEXERS, lexer_for

# Over this line some lexers brood for hours; none that is used does.
ENDLESS = '"' + "\\" * 59 + "!"
BROODING = "chapel"


@pytest.fixture
def colours() -> Iterator[Highlighter]:
    colours = Highlighter()
    yield colours
    colours.close()


def kinds(colours: Highlighter, path: str, code: str) -> dict[str, str]:
    wait_for(lambda: len(colours.pieces(path, code)) > 1, what="colours")
    return dict(colours.pieces(path, code))


def test_code_is_plain_until_it_has_its_colours(colours: Highlighter) -> None:
    code = "def f(): return 'x'  # why"
    assert colours.pieces("a/b.py", code) == ((code, ""),)
    found = kinds(colours, "a/b.py", code)
    assert found["def"] == "keyword"
    assert found["f"] == "function"
    assert found["# why"] == "comment"
    assert "".join(part for part, _ in colours.pieces("a/b.py", code)) == code


def test_a_line_that_is_brooded_over_costs_its_file_the_colours_and_nothing_else(
    colours: Highlighter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(lexing._BY_ENDING, "chpl", BROODING)
    assert colours.pieces("evil.chpl", ENDLESS) == ((ENDLESS, ""),)
    wait_for(lambda: colours.deaths == 1, what="the end of the process")
    assert kinds(colours, "good.py", "import os")["import"] == "keyword"
    assert colours.pieces("evil.chpl", ENDLESS) == ((ENDLESS, ""),)
    assert colours.pieces("evil.chpl", "x = 1") == (("x = 1", ""),)
    assert kinds(colours, "good.py", "import sys")["import"] == "keyword"
    assert colours.deaths == 1


def test_after_some_deaths_everything_is_plain(
    colours: Highlighter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(lexing._BY_ENDING, "chpl", BROODING)
    for number in range(DEATHS_MAX):
        colours.pieces(f"{number}.chpl", ENDLESS)
    wait_for(lambda: colours.deaths == DEATHS_MAX)
    assert colours.pieces("good.py", "import os") == (("import os", ""),)
    assert not colours._waiting


def test_closing_leaves_no_process() -> None:
    colours = Highlighter()
    kinds(colours, "good.py", "import os")
    [process] = [p for p in psutil.Process().children() if "tmuxorch.tui.lexing" in p.cmdline()]
    colours.close()
    assert not process.is_running()
    assert colours.pieces("good.py", "import sys") == (("import sys", ""),)


UNITS = [*"\"'`\\/*#<>[](){}-=+.,:;_$@!%&|^~? \t0aA", "\\'", '\\"', "a.", "a::", "1e", "<a ", "/*",
         "${", "{{", "<<", "r#", "a(", "a[", " a", "a=", "&&", "]]", "#{", "#[", "a<", "::", "..",
         "- ", "| ", "f'{", "$(", "%w", "m/", "(?:", "class ", "x: ", "1_", "a,", "=>"]  # fmt: skip
STARTS = ("", '"', "'", "/", "<", "@", "(", "#", "[", "{", "def ")


def test_every_lexer_that_is_used_survives_lines_made_against_it(colours: Highlighter) -> None:
    lines = [f"{start}{(unit * 61)[: 60 - len(start)]}!" for unit in UNITS for start in STARTS]
    lines += [(unit * 400)[:400] for unit in UNITS]
    for lexer in LEXERS:
        for line in lines[LEXERS.index(lexer) % 8 :: 8]:
            assert colours._exchange(lexer, line) is not None, (lexer, line)


def test_only_known_names_have_a_lexer() -> None:
    assert lexer_for("src/app.py") == "python"
    assert lexer_for("Dockerfile") == "docker"
    assert lexer_for("x/Makefile") == "make"
    assert lexer_for("evil.chpl") is None
    assert lexer_for("py") == "python"
    assert lexer_for("") is None
