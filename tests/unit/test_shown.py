"""Every character is shown and none obeyed; what is offered for pasting does what it shows."""

from __future__ import annotations

import subprocess
import unicodedata

import pytest

from tests.hostile import ARGUMENTS, STRINGS, find_obeyed
from tmuxorch.core.literal import (
    cell_width,
    cut,
    first_line,
    is_plain_text,
    literal,
    padded,
    pasteable,
    screened,
    shown,
)


def test_no_character_of_any_steering_kind_is_left() -> None:
    kinds = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    every = "".join(c for c in map(chr, range(0x110000)) if unicodedata.category(c) in kinds)
    assert literal(every).isascii()
    assert shown(every).isascii()
    assert not {c for c in screened(every) if unicodedata.category(c) in kinds - {"Co"}} - set(
        "\n\t"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\x1b]0;t\x07", r"\x1b]0;t\x07"),
        ("\x7f\x9b", r"\x7f\u009b"),
        ("a\rb\nc\td", r"a\rb\nc   d"),
        ("caf\udce9", r"caf\xe9"),
        ("\ud800", r"\ud800"),
        ("\u202e\u200b\ufeff\xad", r"\u202e\u200b\ufeff\u00ad"),
        ("\U000e0041", r"\U000e0041"),
        ("日本語 e\u0301 \xa0 ❤\ufe0f", "日本語 e\u0301 \xa0 ❤\ufe0f"),
        ("a\ufe0f\ufe0f", r"a\ufe0f\ufe0f"),
    ],
)
def test_it_is_shown_as_shells_and_python_spell_it(text: str, said: str) -> None:
    assert literal(text) == said
    assert literal(said) == said


def test_lines_stay_lines_where_there_is_room_for_several() -> None:
    assert shown("a\r\nb\tc\rd") == "a\nb\tc\\rd"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
        ("\x1b[38;5;8mgrey\x1b[48;2;8;8;8m\x1b[m", "\x1b[38;5;8mgrey\x1b[48;2;8;8;8m\x1b[m"),
        ("\x1b[8mhidden\x1b[0;008m", r"\x1b[8mhidden\x1b[0;008m"),
        ("\x1b[2J\x1b[m\x1b]0;m\x07", "\\x1b[2J\x1b[m\\x1b]0;m\\x07"),
        ("\x1b[" + "1;" * 40 + "m", "\\x1b[" + "1;" * 40 + "m"),
        ("\x1b[?1m\x1b[>4;2m\x1b[", r"\x1b[?1m\x1b[>4;2m\x1b["),
        ("\ue0b0", "\ue0b0"),
    ],
)
def test_colours_are_kept_and_nothing_else(text: str, said: str) -> None:
    assert screened(text) == said


def test_no_hostile_string_is_left() -> None:
    for text in STRINGS:
        assert find_obeyed(literal(text).encode()) == []
        assert find_obeyed(shown(text).encode()) == []
        assert find_obeyed(screened(text).encode(), colours=True) == []


def test_what_is_pasted_is_what_was_meant() -> None:
    command = pasteable(["printf", r"%s\0", *ARGUMENTS])
    assert find_obeyed(command.encode()) == []
    assert "\n" not in command
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    meant = [text.encode("utf-8", "surrogateescape") for text in ARGUMENTS]
    assert done.stdout.split(b"\0")[:-1] == meant
    assert pasteable(["rm", "-r", "/a b/c"]) == "rm -r '/a b/c'"


def test_widths_are_cells() -> None:
    assert cell_width("ab") == 2
    assert cell_width("日本") == 4
    assert cell_width("e\u0301") == 1
    assert padded("日", 4) == "日  "
    assert cut("日本語", 6) == "日本語"
    assert cut("日本語", 5) == "日本\u2026"
    assert cut("abc", 2) == "a\u2026"


def test_a_first_line_is_short_and_literal() -> None:
    assert first_line("\n  \n a\x1bb \nc") == r"a\x1bb"
    assert len(first_line("x" * 1_000_000)) == 500
    assert first_line("") == ""


def test_only_text_that_is_what_it_looks_like_is_plain() -> None:
    assert is_plain_text("two\nlines\tand 日本")
    assert not is_plain_text("a\u200bb")
