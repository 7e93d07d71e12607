"""Tables are for eyes: nothing in them is endless, or obeyed by a terminal."""

from __future__ import annotations

from tmuxorch.cli.paint import CELL_MAX, table


def test_a_task_as_long_as_a_book_is_cut_also_without_a_terminal() -> None:
    text = table([("working", "a", "x" * 300_000)], colours=False)
    assert len(text) < CELL_MAX + 50


def test_where_the_whole_is_asked_for_it_is_shown() -> None:
    assert "x" * 3000 in table([("task", "x" * 3000)], colours=False, width=0)


def test_control_characters_are_shown_not_obeyed() -> None:
    assert "\x1b" not in table([("a", "\x1b[31m")], colours=False)
