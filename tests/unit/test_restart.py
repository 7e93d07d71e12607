"""When a persistent agent comes back, and when not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tmuxorch.core.restart import Limits, carry_flags, plan_restart

LIMITS = Limits(limit=5, window_s=600, first_delay_s=1, max_delay_s=60, healthy_s=60)


def delays(count: int, *, every_s: float = 10, limits: Limits = LIMITS) -> list[float | None]:
    """The waits after deaths in a row, each after a short life, without luck either way."""
    deaths: tuple[float, ...] = ()
    found: list[float | None] = []
    for n in range(count):
        now = 1000 + n * every_s
        plan = plan_restart(deaths, lived_s=1, now=now, limits=limits, luck=0.5)
        deaths = plan.deaths
        found.append(None if plan.restart_at is None else plan.restart_at - now)
    return found


def test_each_wait_is_twice_the_one_before_until_it_is_given_up() -> None:
    assert delays(5) == [1, 2, 4, 8, None]


def test_deaths_that_are_long_past_do_not_count() -> None:
    assert None not in delays(20, every_s=300)


def test_the_wait_has_a_longest() -> None:
    limits = Limits(limit=100, window_s=6000, first_delay_s=1, max_delay_s=60, healthy_s=60)
    assert delays(20, limits=limits)[-1] == 60


def test_a_healthy_life_makes_up_for_earlier_deaths() -> None:
    plan = plan_restart((1, 2, 3, 4), lived_s=60, now=70, limits=LIMITS, luck=0.5)
    assert plan.deaths == (70,)
    assert plan.restart_at == 71


def test_a_limit_of_zero_means_never() -> None:
    limits = Limits(limit=0, window_s=600, first_delay_s=1, max_delay_s=60, healthy_s=60)
    assert plan_restart((), lived_s=1, now=10, limits=limits, luck=0.5).restart_at is None


@given(st.floats(0, 1), st.integers(1, 4))
def test_agents_that_died_together_do_not_come_back_together(luck: float, count: int) -> None:
    before = tuple(float(n) for n in range(count - 1))
    plan = plan_restart(before, lived_s=1, now=10, limits=LIMITS, luck=luck)
    assert plan.restart_at is not None
    middle = 2.0 ** (count - 1)
    assert 0.75 * middle <= plan.restart_at - 10 <= 1.25 * middle


@given(st.lists(st.floats(0, 1e9), max_size=2000), st.floats(0, 1e9), st.floats(0, 1))
def test_it_never_plans_for_the_past_and_never_remembers_more_than_the_window(
    deaths: list[float], now: float, luck: float
) -> None:
    plan = plan_restart(deaths, lived_s=1, now=now, limits=LIMITS, luck=luck)
    assert plan.restart_at is None or plan.restart_at > now
    assert all(now - 600 < at <= now for at in plan.deaths)


def test_a_resume_carries_the_flags_of_the_first_start_and_stays_the_same() -> None:
    first = ("/bin/claude", "--model", "opus", "--session-id", "id", "--verbose", "--", "do it")
    again = carry_flags(first, ("claude", "--resume", "id"), task="do it", conversation="id")
    assert again == ("/bin/claude", "--model", "opus", "--verbose", "--resume", "id")
    assert carry_flags(again, ("claude", "--resume", "id"), task="x", conversation="id") == again


def test_a_task_in_an_option_is_not_carried() -> None:
    first = ("gemini", "--model=pro", "--prompt-interactive=do it")
    resume = ("gemini", "--resume", "latest")
    again = carry_flags(first, resume, task="do it", conversation="latest")
    assert again == ("gemini", "--model=pro", "--resume", "latest")
    assert carry_flags(again, resume, task="do it", conversation="latest") == again


def test_a_first_start_without_flags_is_resumed_as_the_profile_says() -> None:
    resume = ("codex", "resume", "--last")
    assert carry_flags(("codex", "--", "t"), resume, task="t", conversation="latest") == resume
    assert carry_flags(("codex",), resume, task="", conversation="latest") == resume
