"""What the store keeps as text is read as the value it was, whoever wrote it."""

from __future__ import annotations

import pytest

from tmuxorch.model import AgentId, Event, EventKind, Milestone, Step


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("", Step()),
        ("buried", Step(Milestone.BURIED)),
        ("restoring:0123456789ab", Step(Milestone.RESTORING, AgentId("0123456789ab"))),
    ],
)
def test_a_step_is_read_and_written_as_ever(text: str, step: Step) -> None:
    assert (Step.parse(text), str(step)) == (step, text)


def test_a_step_that_nobody_knows_is_no_step() -> None:
    with pytest.raises(ValueError, match="half-way"):
        Step.parse("half-way")


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("ended", EventKind.ENDED),
        ("seen waiting", EventKind.SEEN),
        ("could not remove", EventKind.COULD_NOT),
        ("could not sweep /tmp/x", EventKind.SWEEP_FAILED),
        ("gave tmuxorch/a back its commit", EventKind.BRANCH_MENDED),
        ("endedly", None),
    ],
)
def test_an_event_knows_its_kind(what: str, kind: EventKind | None) -> None:
    assert Event(1, 0.0, AgentId(""), "a", what, "").kind is kind
