"""What `logs -f` prints: every new line once."""

from __future__ import annotations

import pytest

from tmuxorch.cli.logs import new_lines

LONG = [f"line {n}" for n in range(100)]


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        ([], ["a"], ["a"]),
        (["a"], ["a"], []),
        (["a"], ["a", "b"], ["b"]),
        (["a", "b"], ["a", "b and more"], ["b and more"]),
        (LONG, [*LONG[5:], "new"], ["new"]),
        (LONG, LONG[5:], []),
        ([*LONG, "> "], [*LONG[5:], "> typed", "answer"], ["> typed", "answer"]),
        (LONG, ["all", "other"], ["all", "other"]),
    ],
)
def test_only_what_is_new_is_printed(before: list[str], now: list[str], new: list[str]) -> None:
    assert new_lines(before, now) == new
