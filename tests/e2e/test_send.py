"""`send`: what the person wrote is what the agent reads, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World, wait_for

# Reads its terminal in the mode every shell script does; the last line ends it.
READER = ("--", "sh", "-c", "cat >out.txt")

LINES = "\n".join(f"line {n} of a long message" for n in range(200))
TEXTS = [
    "plain words",
    "trailing semicolon;",
    ";",
    "Enter",
    "C-c",
    "-x",
    "--",
    "-l Enter",
    "#(touch pwned) #{pane_id} ##",
    "$(touch pwned) `touch pwned` $HOME ~ * \\n \\",
    "'single' \"double\" it's",
    "grüße 日本語 🎉 é",
    "  spaces around  ",
    "two\nlines",
    "blank\n\n\nlines",
    "%1 @1 {end}",
    LINES,
]


def received(worker: dict[str, Any]) -> str:
    path = Path(worker["worktree"]) / "out.txt"
    return path.read_text() if path.exists() else ""


def test_every_text_arrives_byte_for_byte_and_once(world: World) -> None:
    made = world.new("-n", "a", *READER)
    expected = ""
    for text in TEXTS:
        world.run("send", "a", "--", text)
        expected += text + "\n"
        wait_for(lambda: len(received(made)) >= len(expected), what=repr(text[:40]))  # noqa: B023
        assert received(made) == expected, text[:40]
    assert not (Path(made["worktree"]) / "pwned").exists()


@pytest.mark.parametrize("text", ["-x", "-x y", "--unknown", "-quick", "-Look", "-h!"])
def test_a_text_that_looks_like_an_option_needs_no_dashes(world: World, text: str) -> None:
    made = world.new("-n", "a", *READER)
    world.run("send", "a", text)
    wait_for(lambda: received(made))
    assert received(made) == f"{text}\n"


def test_options_are_options_before_and_after_the_text(world: World) -> None:
    made = world.new("-n", "a", *READER)
    done = world.run("send", "-q", "a", "-quick", "-S", world.socket)
    assert done.stderr == ""
    wait_for(lambda: received(made))
    assert received(made) == "-quick\n"
    refused = world.run("send", "a", "two", "words", ok=False)
    assert refused.returncode == 2
    assert "(words)" in refused.stderr


@pytest.mark.parametrize("args", [("a",), ("a", "-")])
def test_standard_input_is_sent_without_its_last_newline(
    world: World, args: tuple[str, ...]
) -> None:
    made = world.new("-n", "a", *READER)
    world.run("send", *args, stdin="from\na pipe\n")
    wait_for(lambda: received(made).count("\n") == 2)
    world.run("send", "a", "end")
    wait_for(lambda: "end" in received(made))
    assert received(made) == "from\na pipe\nend\n"


def test_a_megabyte_of_short_lines_arrives_whole(world: World) -> None:
    made = world.new("-n", "a", *READER)
    text = "\n".join(f"{n:06} {'x' * 40}" for n in range(21_800))
    assert 1_000_000 < len(text) <= 1024 * 1024
    world.run("send", "a", stdin=text)
    wait_for(lambda: len(received(made)) >= len(text) + 1)
    assert received(made) == text + "\n"


def test_a_pane_in_copy_mode_gets_the_text_once(world: World) -> None:
    made = world.new("-n", "a", *READER)
    pane = made["tmux"]["pane"]
    world.tmux("copy-mode", "-t", pane)
    assert world.tmux("display-message", "-p", "-t", pane, "#{pane_in_mode}") == "1\n"
    world.run("send", "a", "wake up")
    world.run("send", "a", "and again")
    wait_for(lambda: "again\n" in received(made))
    assert received(made) == "wake up\nand again\n"


def test_a_program_that_asks_for_pastes_gets_one_paste_and_one_enter(world: World) -> None:
    script = (
        "import os, sys, tty; tty.setraw(0); os.write(1, b'\\x1b[?2004h')\n"
        "f = open('raw', 'ab', 0)\n"
        "while True: f.write(os.read(0, 65536))"
    )
    made = world.new("-n", "a", "--", "python", "-c", script)
    raw = Path(made["worktree"]) / "raw"
    wait_for(raw.exists)
    world.run("send", "a", "one\ntwo")
    wait_for(lambda: raw.read_bytes().endswith(b"\r"))
    assert raw.read_bytes() == b"\x1b[200~one\ntwo\x1b[201~\r"


def test_no_buffer_of_ours_is_left_and_the_persons_own_stays(world: World) -> None:
    made = world.new("-n", "a", *READER)
    world.tmux("set-buffer", "-b", "mine", "precious")
    world.run("send", "a", "hello")
    wait_for(lambda: received(made))
    assert world.tmux("list-buffers", "-F", "#{buffer_name}") == "mine\n"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x1b[201~rm -rf", "escape"),
        (b"a\rb", "carriage return"),
        (b"a\x00b", "NUL"),
        (b"\xff\xfe", "UTF-8"),
        (b"x" * (1024 * 1024 + 1), "1 MB"),
        (b"", "the text is empty"),
        (b"\n", "the text is empty"),
    ],
)
def test_a_text_that_a_terminal_would_obey_is_refused(world: World, data: bytes, word: str) -> None:
    made = world.new("-n", "a", *READER)
    done = world.run("send", "a", stdin=data, ok=False)
    assert done.returncode == 1
    assert word in done.stderr
    assert "\x1b" not in done.stderr
    world.run("send", "a", "end")
    wait_for(lambda: received(made))
    assert received(made) == "end\n"


def test_nothing_is_sent_to_an_agent_that_has_ended(world: World) -> None:
    world.new("-n", "a", "--", "true")
    wait_for(lambda: world.json("ls")[0]["state"] == "exited")
    done = world.run("send", "a", "hello", ok=False)
    assert done.returncode == 1
    assert "tmuxorch restart a" in done.stderr
    assert world.tmux("display-message", "-p", "alive") == "alive\n"
