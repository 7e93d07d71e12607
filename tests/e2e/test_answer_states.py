"""`answer` to every program's question: the one that was meant is taken, or nothing is pressed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import World, wait_for
from tests.staging import STYLES, Stage
from tests.stub_agent import ANSWERS


@pytest.fixture
def stage(world: World, request: pytest.FixtureRequest) -> Stage:
    return Stage(world, request.param)


of_every_program = pytest.mark.parametrize("stage", STYLES, indirect=True)
of_claude = pytest.mark.parametrize("stage", ["claude"], indirect=True)
of_two_kinds = pytest.mark.parametrize("stage", ["claude", "opencode"], indirect=True)


def keys_of(stage: Stage) -> list[str]:
    return [choice["key"] for choice in stage.explained()["question"]["choices"]]


def last_key(stage: Stage) -> str:
    return "n" if stage.style == "aider" else str(len(ANSWERS[stage.style]))


def refused(stage: Stage, choice: str) -> str:
    """What is said when the answer is refused, and nothing was pressed."""
    done = stage.world.run("answer", "a", choice, ok=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert stage.log() == []
    return done.stderr


@of_every_program
def test_each_answer_is_taken_by_its_key(stage: Stage) -> None:
    answers = ANSWERS[stage.style]
    stage.does("asking")
    for key, answer in zip(keys_of(stage), answers, strict=True):
        stage.does("asking")
        assert stage.world.run("answer", "a", key).stdout == f"answered: {answer}\n"
        assert stage.status() == "idle"
    assert stage.log() == [("chosen", answer) for answer in answers]


@of_every_program
def test_an_answer_is_taken_by_its_first_words(stage: Stage) -> None:
    stage.does("asking")
    last = ANSWERS[stage.style][-1]
    found = stage.world.json("answer", "a", last[:2].upper())
    assert found == {"answered": True, "choice": {"key": last_key(stage), "text": last}}
    assert stage.log() == [("chosen", last)]


@of_every_program
def test_one_that_asks_nothing_is_not_answered(stage: Stage) -> None:
    for state in ("idle", "busy"):
        stage.does(state)
        assert "asks nothing" in refused(stage, "1")


@of_every_program
def test_what_is_no_answer_is_said_with_the_question(stage: Stage) -> None:
    stage.does("asking", asks="May I touch it?")
    said = refused(stage, "9")
    assert "none of the answers" in said
    assert "May I touch it?" in said
    assert stage.status() == "waiting"


@of_claude
def test_words_that_fit_two_answers_are_no_answer(stage: Stage) -> None:
    stage.does("asking")
    assert "fits 2 of the answers" in refused(stage, "Ye")


@of_every_program
def test_another_question_than_the_list_shows_is_not_answered(stage: Stage) -> None:
    def asked() -> Any:
        [row] = stage.world.json("ls")
        return row["question"]

    with stage.world.watching():
        stage.does("asking", asks="touch out.txt")
        wait_for(asked, what="the question in the list")
    stage.does("asking", asks="rm everything")
    key = last_key(stage)
    said = refused(stage, key)
    assert "asks something else by now" in said
    assert "rm everything" in said
    assert "rm everything" in asked()["text"]
    assert stage.world.run("answer", "a", key).stdout.startswith("answered: ")
    assert stage.log() == [("chosen", ANSWERS[stage.style][-1])]


@of_claude
def test_a_question_that_stays_is_said(stage: Stage) -> None:
    stage.does("asking", obeys_no_key=True)
    done = stage.world.run("answer", "a", "2", ok=False)
    assert done.returncode == 1
    assert "still asks the same" in done.stderr
    assert stage.log() == []
    assert stage.status() == "waiting"


@pytest.mark.parametrize("stage", ["claude", "codex", "gemini"], indirect=True)
def test_where_a_key_only_moves_the_mark_enter_follows(stage: Stage) -> None:
    stage.does("asking", keys_move=True)
    stage.world.run("answer", "a", "2")
    assert stage.log() == [("chosen", ANSWERS[stage.style][1])]


@of_two_kinds
def test_what_was_answered_is_in_the_decision_log(stage: Stage) -> None:
    stage.does("asking")
    stage.world.run("answer", "a", "1")
    assert ANSWERS[stage.style][0] in stage.world.run("why", "a").stdout


@of_claude
def test_the_shell_completes_the_answers(stage: Stage) -> None:
    with stage.world.watching():
        stage.does("asking")
        wait_for(lambda: stage.world.json("ls")[0]["question"], what="the question in the list")
    environ = {"_TMUXORCH_COMPLETE": "bash_complete", "COMP_WORDS": "tmuxorch answer a ",
               "COMP_CWORD": "3"}  # fmt: skip
    done = stage.world.run(env=environ)
    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == ["1", "2", "3"]
