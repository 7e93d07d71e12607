"""`send` in every state of every program: it arrives once, or nothing does and that is said."""

from __future__ import annotations

import json
import subprocess
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


@of_every_program
def test_an_idle_one_takes_a_message_once(stage: Stage) -> None:
    stage.does("idle")
    done = stage.world.run("send", "a", "first line\nsecond line")
    assert done.stdout == "delivered\n"
    assert stage.taken() == ["first line\nsecond line"]
    assert stage.world.json("send", "a", "again") == {"delivered": True, "queued": False}
    assert stage.taken() == ["first line\nsecond line", "again"]


@of_every_program
def test_one_that_asks_is_not_sent_to(stage: Stage) -> None:
    stage.does("asking")
    done = stage.world.run("send", "a", "do NOT run it", ok=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was sent" in done.stderr
    assert "1. Yes" in done.stderr or "Allow once" in done.stderr or "y. Yes" in done.stderr
    assert stage.log() == []
    assert stage.status() == "waiting"


@of_every_program
@pytest.mark.parametrize("options", [(), ("--no-confirm",)])
def test_a_question_that_comes_with_the_paste_is_not_answered(
    stage: Stage, options: tuple[str, ...]
) -> None:
    stage.does("idle", asks_on_paste=True)
    done = stage.world.run("send", "a", *options, "--", "do NOT run it", ok=False)
    assert done.returncode == 1
    assert "Enter was not pressed" in done.stderr
    assert stage.log() == [("pasted", "do NOT run it")]
    assert stage.status() == "waiting"


@pytest.mark.parametrize(
    ("stage", "said"),
    [("claude", "queued"), ("opencode", "queued"), ("codex", "delivered"), ("gemini", "delivered")],
    indirect=["stage"],
)
def test_one_that_works_takes_it_or_puts_it_by(stage: Stage, said: str) -> None:
    stage.does("busy")
    assert stage.world.run("send", "a", "next").stdout == f"{said}\n"
    assert stage.taken() == ["next"]


@pytest.mark.parametrize("stage", ["aider"], indirect=True)
def test_one_without_an_input_box_while_it_works_is_not_sent_to(stage: Stage) -> None:
    stage.does("busy")
    done = stage.world.run("send", "a", "one\ntwo", ok=False)
    assert done.returncode == 1
    assert "takes no message while it works; nothing was sent" in done.stderr
    assert stage.log() == []


@of_every_program
def test_one_that_begins_to_work_has_taken_it(stage: Stage) -> None:
    stage.does("idle", works_then=True)
    assert stage.world.run("send", "a", "a long task").stdout == "delivered\n"
    assert stage.taken() == ["a long task"]


@of_every_program
def test_a_text_that_ends_the_program_is_sent(stage: Stage) -> None:
    stage.does("idle")
    done = stage.world.run("send", "a", "/exit")
    assert done.stdout in ("", "delivered\n")
    assert "nothing was sent" not in done.stderr
    assert stage.taken() == ["/exit"]


@of_every_program
def test_one_that_starts_is_waited_for(stage: Stage) -> None:
    stage.does("starting")
    told = stage.directory / "told"
    with told.open("w") as err:
        sender = subprocess.Popen(
            ["tmuxorch", "send", "a", "hello"],
            cwd=stage.world.repo,
            env=stage.world.environ,
            stdout=subprocess.PIPE,
            stderr=err,
        )
    wait_for(lambda: "waiting for a" in told.read_text(), what="the wait to be told")
    assert stage.log() == []
    stage.does("idle")
    assert sender.communicate(timeout=60)[0] == b"delivered\n"
    assert stage.taken() == ["hello"]


@of_every_program
def test_an_enter_that_came_too_soon_is_pressed_again(stage: Stage) -> None:
    stage.does("idle", ignores=1)
    assert stage.world.run("send", "a", "hello").stdout == "delivered\n"
    assert [what for what, _ in stage.log()] == ["pasted", "ignored", "taken"]


@of_claude
def test_enter_waits_for_the_box_to_show_the_text(stage: Stage) -> None:
    stage.does("idle", deaf_s=0.5, shows_after_s=0.5)
    assert stage.world.run("send", "a", "hello").stdout == "delivered\n"
    assert [what for what, _ in stage.log()] == ["pasted", "taken"]


@of_claude
def test_what_is_left_in_the_box_is_said_and_not_joined_to_the_next(stage: Stage) -> None:
    stage.does("idle", deaf_s=1000)
    done = stage.world.run("send", "a", "hello there", "--json", ok=False)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"delivered": False, "queued": False}
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "not_delivered"
    assert "'hello there' is still in its input box" in error["message"]
    stage.does("idle")
    done = stage.world.run("send", "a", "next", ok=False)
    assert "'hello there' is written in the input box" in done.stderr
    assert stage.pasted() == ["hello there"]


@of_claude
def test_a_message_that_looks_like_an_answer_is_a_message(stage: Stage) -> None:
    stage.does("idle")
    text = "1. Do you want to proceed? is the question\n2. Esc to cancel is no answer"
    assert stage.world.run("send", "a", text).stdout == "delivered\n"
    assert stage.taken() == [text]


@of_every_program
def test_an_answer_is_given_to_the_open_question(stage: Stage) -> None:
    stage.does("asking")
    key = "n" if stage.style == "aider" else "2"
    assert stage.world.run("send", "a", key, "--answer").stdout == "delivered\n"
    assert stage.log() == [("chosen", ANSWERS[stage.style][1])]


@of_claude
def test_words_are_no_answer_to_a_list_of_choices(stage: Stage) -> None:
    stage.does("asking")
    done = stage.world.run("send", "a", "no, leave it", "--answer", ok=False)
    assert done.returncode == 1
    assert "none of the answers" in done.stderr
    assert stage.log() == []
    assert stage.status() == "waiting"


@of_claude
def test_an_answer_to_a_question_that_is_gone_is_not_sent(stage: Stage) -> None:
    stage.does("idle")
    done = stage.world.run("send", "a", "1", "--answer", ok=False)
    assert "asks nothing" in done.stderr
    assert stage.log() == []


@of_claude
def test_what_a_leading_sign_means_is_said(stage: Stage) -> None:
    stage.does("idle")
    done = stage.world.run("send", "a", "!ls")
    assert "! at the beginning of a text runs a shell command" in done.stderr
    done = stage.world.run("send", "a", "!ls", "--literal")
    assert done.stderr == ""
    done = stage.world.run("send", "a", "@README", "--literal", ok=False)
    assert "nothing was sent" in done.stderr
    assert stage.taken() == ["!ls", " !ls"]


@of_every_program
def test_the_question_is_seen_by_the_watcher_and_explained(stage: Stage) -> None:
    def row() -> dict[str, Any]:
        [found] = stage.world.json("ls")
        return dict(found)

    with stage.world.watching():
        stage.does("asking")
        wait_for(lambda: row()["question"], what="the question in the list")
        asked = row()
        assert asked["status"] == "waiting"
        assert len(asked["question"]["choices"]) >= 2
        assert stage.world.json("show", "a")["question"] == asked["question"]
        assert stage.explained()["question"] == asked["question"]
        stage.does("busy")
        wait_for(lambda: row()["status"] == "working", what="the work")
        assert row()["question"] is None


@pytest.mark.parametrize("stage", ["codex"], indirect=True)
def test_it_is_explained_which_source_decided(stage: Stage) -> None:
    stage.does("busy")
    found = stage.explained()
    assert found["by"] == "title"
    assert [source["source"] for source in found["sources"]] == [
        "hook",
        "title",
        "screen",
        "output",
    ]
    by_name = {source["source"]: source for source in found["sources"]}
    assert list(by_name) == ["hook", "title", "screen", "output"]
    assert by_name["title"]["line"][1:] == " wt"
    assert by_name["screen"]["status"] == "idle"
    text = stage.world.run("explain", "a").stdout
    assert text.startswith("working, by its title\n")
    stage.world.run("stop", "a")
    assert stage.explained()["by"] == "record"


@of_every_program
def test_messages_of_several_people_arrive_one_by_one(stage: Stage) -> None:
    stage.does("idle")
    texts = {f"from person {n}" for n in range(3)}
    senders = [
        subprocess.Popen(
            ["tmuxorch", "send", "a", text],
            cwd=stage.world.repo,
            env=stage.world.environ,
            stdout=subprocess.DEVNULL,
        )
        for text in sorted(texts)
    ]
    assert [sender.wait(60) for sender in senders] == [0, 0, 0]
    assert set(stage.taken()) == texts
