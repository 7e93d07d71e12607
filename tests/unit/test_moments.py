"""When something happened, whatever the wall clock was set to meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxorch.core.moments import JUMP_S, Moments

HOUR_S = 3600.0


def test_a_stamp_is_as_old_as_the_clock_says() -> None:
    moments = Moments()
    moments.look(1000.0, 10.0)
    assert moments.now - moments.place("x", 993.0) == 7.0


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_setting_the_clock_makes_nothing_older_or_younger(step_s: float) -> None:
    moments = Moments()
    moments.look(1000.0, 10.0)
    moments.place("x", 999.0)
    moments.look(1002.0 + step_s, 12.0)
    assert moments.now - moments.place("x", 999.0) == 3.0


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_what_happens_after_the_clock_was_set_is_later_than_what_was_before(step_s: float) -> None:
    moments = Moments()
    moments.look(1000.0, 10.0)
    before = moments.place("report", 999.0)
    moments.place("screen", 990.0)
    moments.look(1010.0 + step_s, 20.0)
    after = moments.place("screen", 1008.0 + step_s)
    assert after - before == pytest.approx(9.0)


def test_a_stamp_of_the_future_is_of_now() -> None:
    moments = Moments()
    moments.look(1000.0, 10.0)
    assert moments.place("x", 1000.0 + HOUR_S) == moments.now


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 100)), max_size=20))
def test_the_scale_never_goes_back_by_more_than_a_correction(
    steps: list[tuple[float, float]],
) -> None:
    moments, wall, monotonic = Moments(), 1e9, 0.0
    moments.look(wall, monotonic)
    for wall_s, passed_s in steps:
        wall, monotonic = wall + wall_s, monotonic + passed_s
        before = moments.now
        moments.look(wall, monotonic)
        assert before - JUMP_S <= moments.now <= before + passed_s + JUMP_S + 1e-3
