"""What an agent does, by all that tells of it: hook, title, screen and the time of its output."""

# ruff: noqa: RUF001 -- the marks are those that the agents draw

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tmuxorch import config
from tmuxorch.core.evidence import Judgement, Sight, Source, judge
from tmuxorch.model import Status

BUILT_IN = config.load("/nonexistent/config.toml", None).agents
WORKING, WAITING, IDLE = Status.WORKING, Status.WAITING, Status.IDLE
NOW = 1000.0

CODEX_PROMPT = ["• I am answering slowly: one two", "", "› Ask Codex to do anything", "", "  gpt-5"]
CLAUDE_PROMPT = ["● Done.", "─" * 40, "❯ ", "─" * 40, "  ? for shortcuts"]
CLAUDE_BUSY = ["✻ Cooking… (3s · ↓ 20 tokens)", *CLAUDE_PROMPT[1:]]
CLAUDE_ASKS = ["─" * 40, " Do you want to proceed?", " ❯ 1. Yes", "   2. No", " Esc to cancel"]
OPENCODE_ALLOWS = [
    "  ┃  △ Always allow", "  ┃", "  ┃  - /tmp/*", "  ┃",
    "  ┃   Confirm   Cancel      ⇆ select  enter confirm",
]  # fmt: skip
CLAUDE_ODD = ["A dialog of a later version"]


def judged(agent: str, lines: Sequence[str] = (), **facts: object) -> Judgement:
    sight = {"now": NOW, "drawn_at": NOW - 1, "lines": lines, **facts}
    return judge(BUILT_IN.get(agent), Sight(**sight))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "agent", "title", "lines", "status", "by"),
    [
        ("codex streams, as its title alone says", "codex", "⠧ w", CODEX_PROMPT, WORKING, "title"),
        ("codex is done", "codex", "w", CODEX_PROMPT, IDLE, "screen"),
        ("codex asks", "codex", "[ . ] Action Required | w", CODEX_PROMPT, WAITING, "title"),
        (
            "opencode asks before it allows for long",
            "opencode",
            "OC | t",
            OPENCODE_ALLOWS,
            WAITING,
            "screen",
        ),
        ("claude works", "claude", "⠂ t", CLAUDE_BUSY, WORKING, "title"),
        ("claude is done", "claude", "✳ t", CLAUDE_PROMPT, IDLE, "title"),
        ("claude asks below a title of rest", "claude", "✳ t", CLAUDE_ASKS, WAITING, "screen"),
        ("claude asks below an old title", "claude", "⠂ t", CLAUDE_ASKS, WAITING, "screen"),
        ("an older claude has one title", "claude", "✳ t", CLAUDE_BUSY, WORKING, "screen"),
        ("gemini asks oddly", "gemini", "✋  Action Required (w)", ["?"], WAITING, "title"),
        ("no title, no word", "claude", "host", CLAUDE_ODD, WORKING, "output"),
    ],
)
def test_title_and_screen_together(
    what: str, agent: str, title: str, lines: list[str], status: Status, by: str
) -> None:
    found = judged(agent, lines, title=title)
    assert (found.status, found.by) == (status, by), what


def test_a_busy_line_that_no_longer_moves_does_not_outweigh_a_title_of_rest() -> None:
    found = judged("claude", CLAUDE_BUSY, title="✳ t", drawn_at=NOW - 5)
    assert (found.status, found.by) == (IDLE, Source.TITLE)


@pytest.mark.parametrize(("ago_s", "status"), [(1.0, WORKING), (9.0, WORKING), (11.0, IDLE)])
def test_a_command_without_a_profile_works_while_it_prints(ago_s: float, status: Status) -> None:
    found = judged("no such agent", ["❯ 1. Yes"], title="⠧ w", drawn_at=NOW - ago_s)
    assert (found.status, found.by) == (status, Source.OUTPUT)


@pytest.mark.parametrize(
    ("what", "reported", "ago_s", "title", "lines", "drawn_s", "status", "by"),
    [
        ("fresh", IDLE, 0.2, "⠂ t", CLAUDE_BUSY, 0.0, IDLE, "hook"),
        ("a title that works on", IDLE, 1.5, "⠂ t", CLAUDE_BUSY, 1.4, WORKING, "title"),
        ("interrupted: no hook runs", WORKING, 4.0, "✳ t", CLAUDE_PROMPT, 0.0, IDLE, "title"),
        ("asks after its hook", WORKING, 1.5, "✳ t", CLAUDE_ASKS, 1.4, WAITING, "screen"),
        ("a dialog nobody knows", WAITING, 60.0, "✳ t", CLAUDE_ODD, 59.0, WAITING, "hook"),
        ("its answer was drawn", WAITING, 60.0, "✳ t", CLAUDE_PROMPT, 1.0, IDLE, "title"),
        ("nothing drawn since", WAITING, 60.0, "", CLAUDE_PROMPT, 60.0, WAITING, "hook"),
        ("redrawn as it was reported", WAITING, 60.0, "", CLAUDE_BUSY, 59.5, WAITING, "hook"),
        ("the screen moved on", IDLE, 60.0, "", CLAUDE_BUSY, 1.0, WORKING, "screen"),
        ("a screen that says nothing", IDLE, 60.0, "", CLAUDE_ODD, 1.0, IDLE, "hook"),
    ],
)
def test_a_report_counts_until_what_came_later_contradicts_it(
    what: str,
    reported: Status,
    ago_s: float,
    title: str,
    lines: list[str],
    drawn_s: float,
    status: Status,
    by: str,
) -> None:
    found = judged(
        "claude",
        lines,
        title=title,
        drawn_at=NOW - drawn_s,
        reported=reported,
        reported_at=NOW - ago_s,
    )
    assert (found.status, found.by) == (status, by), what


def test_every_source_is_told_with_its_words_and_time() -> None:
    found = judged(
        "claude", CLAUDE_BUSY, title="⠂ t", reported=WORKING, reported_at=NOW - 2, drawn_at=NOW - 1
    )
    assert [(e.source, e.status, e.at, e.line) for e in found.evidence] == [
        ("hook", WORKING, NOW - 2, ""),
        ("title", WORKING, NOW, "⠂ t"),
        ("screen", WORKING, NOW - 1, "✻ Cooking… (3s · ↓ 20 tokens)"),
        ("output", WORKING, NOW - 1, "last output 1 s ago"),
    ]


def test_only_one_that_waits_has_a_question() -> None:
    assert judged("claude", CLAUDE_PROMPT, title="✳ t").question is None
    question = judged("claude", CLAUDE_ASKS, title="✳ t").question
    assert question is not None
    assert question.text == "Do you want to proceed?"
