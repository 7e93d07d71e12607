"""What is written in an agent's input box, from boxes as the agents draw them."""

# ruff: noqa: RUF001 -- the marks are those that the agents draw

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxorch import config
from tmuxorch.core.inputbox import holds, plain_words, read_box, without_faint

BUILT_IN = config.load("/nonexistent/config.toml", None).agents
RULE = "─" * 60
FAINT, PLAIN = "\x1b[2m", "\x1b[0m"

BOXES = {
    "claude, empty": ("claude", f"● Done.\n{RULE}\n❯\xa0\n{RULE}\n  ? for shortcuts", ""),
    "claude, a hint": ("claude", f"{RULE}\n❯ {FAINT}Try \"fix it\"{PLAIN}\n{RULE}", ""),
    "claude, queued before": (
        "claude", f"{RULE}\n❯ Press up to edit queued messages\n{RULE}", ""),
    "claude, wrapped": (
        "claude",
        f"❯ old\n{RULE}\n❯ one\n  two\n\n  three\n{RULE}\n  foot", "one\ntwo\n\nthree"),
    "claude, a list": ("claude", f"{RULE}\n❯ 1. one\n  2. two\n{RULE}", "1. one\n2. two"),
    "claude asks": ("claude", f"{RULE}\n Do you want to?\n ❯ 1. Yes\n   2. No\n", None),
    "claude asks below a rule": ("claude", f"  1. Red\n{RULE}\n❯ 2. Chat\n\nEnter to", None),
    "codex, empty": (
        "codex", f"› old\n\n› {FAINT}Ask Codex to do anything{PLAIN}\n\n  gpt-5 · ~/wt", ""),
    "codex, written": ("codex", "› one\n  two\n\n  gpt-5 · ~/wt", "one\ntwo"),
    "codex asks": (
        "codex", "  Run it?\n\n› 1. Yes\n  2. No\n\n  Press enter to confirm or esc", None),
    "gemini, empty": (
        "gemini", f" > old\n{FAINT}{RULE}{PLAIN}\n Tab\n\n >   Type your message or @p\n\n w", ""),
    "gemini, written": (
        "gemini", f" > old\n{RULE}\n Shift+Tab\n\n > one\n   two\n\n workspace", "one\ntwo"),
    "gemini asks": ("gemini", f" > old\n{RULE}\n │ ● 1. Allow once │\n", None),
    "opencode, empty": ("opencode", "  ┃  old\n\n  ┃\n  ┃\n  ┃  Build · lab\n  ╹▀▀▀▀▀▀\n  f", ""),
    "opencode, a hint": (
        "opencode", '  ┃\n  ┃  Ask anything… "Fix"\n  ┃\n  ┃  Build · lab\n  ╹' + "▀" * 40, ""),
    "opencode, text beside it": (
        "opencode",
        "  ┃                 title\n  ┃  one            path\n  ┃  Build · lab\n  ╹▀▀▀▀▀▀▀▀▀▀    x",
        "one"),
    "opencode, a list of commands above it": (
        "opencode",
        "  ┃ /exit   Exit the app      ┃\n  ┃ /export   Export it     ┃\n"
        "  ┃\n  ┃  /exit\n  ┃\n  ┃  Build · lab\n  ╹" + "▀" * 40, "/exit"),
    "opencode asks": ("opencode", "  ┃  △ Permission required\n  ┃   Allow once   Reject\n", None),
    "aider, empty": ("aider", f"Tokens: 1\n{RULE}\n> ", ""),
    "aider, with a file": ("aider", f"{RULE}\nmade.txt\narchitect> one\ntwo", "one\ntwo"),
    "aider answers": ("aider", f"{RULE}\n> one\n\nI answer", None),
    "aider asks": ("aider", f"{RULE}\n> one\n\nAdd it? (Y)es/(N)o [Yes]:", None),
    "a shell has none": ("shell", "$ ls", None),
}  # fmt: skip


@pytest.mark.parametrize("what", BOXES)
def test_what_is_written_in_a_box(what: str) -> None:
    agent, screen, written = BOXES[what]
    assert read_box(BUILT_IN[agent], screen.split("\n")) == written


@pytest.mark.parametrize(
    ("written", "message", "is_held"),
    [
        ("hello", "hello", True),
        ("a long text that is\nwrapped", "a long text that is wrapped", True),
        ("[Pasted text #1 +199 lines]", "one\ntwo", True),
        ("[Pasted ~3 lines]", "one\ntwo\nthree", True),
        ("the end of it", "the beginning and the end of it", True),
        ("hello", "goodbye", False),
        ("", "hello", False),
        ("…", "…", True),
    ],
)
def test_whether_a_box_holds_the_message(written: str, message: str, is_held: bool) -> None:
    assert holds(written, message) is is_held


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("hello world", "hello world"),
        ("one, two\nthree #{x}", "three"),
        ("日本語", ""),
        ("[Pasted text #1 +199 lines]", "199 lines"),
        ("a", "a"),
        ("x" * 80, "x" * 30),
    ],
)
def test_words_that_mean_nothing_to_tmux(written: str, words: str) -> None:
    assert plain_words(written) == words


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[2mfaint\x1b[0mb", "a     b"),
        ("a\x1b[2mfaint\x1b[22mb", "a     b"),
        ("\x1b[38;5;2mgreen\x1b[48;2;1;2;3mground", "greenground"),
        ("\x1b[1;2mfaint", "     "),
        ("\x1b[0;2mx\x1b[my", " y"),
    ],
)
def test_what_is_drawn_faint_is_no_text(line: str, shown: str) -> None:
    assert without_faint(line) == shown


@given(st.sampled_from(sorted(BUILT_IN)), st.lists(st.text(max_size=30), max_size=30))
def test_no_screen_is_too_odd(agent: str, lines: list[str]) -> None:
    written = read_box(BUILT_IN[agent], lines)
    assert written is None or plain_words(written).isascii()
