"""The question on a screen and its answers, from dialogs as the agents draw them."""

# ruff: noqa: RUF001 -- the marks are those that the agents draw

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmuxorch.core.question import Mark, match_choices, read_mark, read_question
from tmuxorch.model import Choice, Question

DIALOGS = {
    "claude": ("""
● Bash(touch out.txt)
  ⎿  Waiting…

────────────────────────────────────────
 Bash command

   touch out.txt
   Touch a file

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and always allow access to it
   3. No

 Esc to cancel · Tab to amend

  1 tasks (0 done, 1 open)
""", "Bash command\ntouch out.txt\nTouch a file\nDo you want to proceed?",
     [("1", "Yes"), ("2", "Yes, and always allow access to it"), ("3", "No")]),
    "claude, a question of its own": ("""
────────────────────────────────────────
Which colour should it be?

❯ 1. Red
     red one
  2. Type something.
────────────────────────────────────────
  3. Chat about this

Enter to select · Esc to cancel
""", "Which colour should it be?",
     [("1", "Red"), ("2", "Type something."), ("3", "Chat about this")]),
    "codex": ("""
• Running touch out.txt

  Would you like to run the following command?

  $ touch out.txt

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands that start with `touch
     out.txt` (p)
  3. No (esc)

  Press enter to confirm or esc to cancel
""", "Would you like to run the following command?\n$ touch out.txt",
     [("1", "Yes, proceed (y)"),
      ("2", "Yes, and don't ask again for commands that start with `touch"),
      ("3", "No (esc)")]),
    "gemini": ("""
✦ I will use a tool.
╭──────────────────────────────╮
│ ? Shell  touch out.txt       │
│ ╭──────────────────────────╮ │
│ │ touch out.txt            │ │
│ ╰──────────────────────────╯ │
│ Allow execution of [Shell]?  │
│                              │
│ ● 1. Allow once              │
│   2. No (esc)                │
╰──────────────────────────────╯
""", "? Shell  touch out.txt\ntouch out.txt\nAllow execution of [Shell]?",
     [("1", "Allow once"), ("2", "No (esc)")]),
    "opencode": ("""
     $ touch out.txt

  ┃
  ┃  △ Permission required                                             a title
  ┃    # Shell command                                                 1.6K (2%)
  ┃
  ┃                                                                    ~/worktree
  ┃   Allow once   Allow always   Reject            ctrl+f fullscreen  ⇆ select
  ┃
""", "△ Permission required\n# Shell command",
     [("1", "Allow once"), ("2", "Allow always"), ("3", "Reject")]),
    "opencode, before it allows something for long": ("""
  ┃  △ Always allow
  ┃
  ┃  - /tmp/*
  ┃
  ┃   Confirm   Cancel                                        ⇆ select  enter confirm
""", "△ Always allow\n- /tmp/*", [("1", "Confirm"), ("2", "Cancel")]),
    "aider": ("""
────────────────────────────────────────
> make it

made.txt
Create new file? (Y)es/(N)o/(D)on't ask again [Yes]:
""", "made.txt\nCreate new file?",
     [("y", "Yes"), ("n", "No"), ("d", "Don't ask again")]),
}  # fmt: skip


@pytest.mark.parametrize("what", DIALOGS)
def test_a_question_is_read_with_its_choices(what: str) -> None:
    screen, text, choices = DIALOGS[what]
    found = read_question(screen.splitlines(), "")
    assert found.text == text
    assert [(choice.key, choice.text) for choice in found.choices] == choices


def test_without_choices_it_is_the_line_that_asks() -> None:
    found = read_question(["Welcome", "Enter Gemini API Key"], "Enter   Gemini API Key")
    assert (found.text, found.choices) == ("Enter Gemini API Key", ())


def test_a_list_far_above_offers_no_answers() -> None:
    found = read_question(["1. Once", "2. Twice", *["a line"] * 40], "a line")
    assert found.choices == ()


ON, OFF, WORD = "\x1b[48;5;215m", "\x1b[48;5;234m", "\x1b[38;5;8m"


@pytest.mark.parametrize("marked", range(3))
def test_of_answers_side_by_side_the_marked_one_is_drawn_on_its_own_colour(marked: int) -> None:
    words = ["Allow once", "Allow always", "Reject"]
    drawn = [f"{ON if n == marked else OFF} {WORD}{word} {OFF}" for n, word in enumerate(words)]
    row = f"  ┃{OFF}  {' '.join(drawn)}   ⇆ select  enter confirm\x1b[0m"
    assert read_mark(["  ┃  △ Permission required", row]) == Mark(marked, is_across=True)


def test_the_marked_answer_of_a_list_has_a_sign_before_it() -> None:
    lines = ["Which?", "  1. Red", "     a red one", "❯ 2. Blue", "  3. Other"]
    assert read_mark(lines) == Mark(1, is_across=False)
    assert read_mark([line.replace("❯", " ") for line in lines]) is None
    assert read_mark(["no question"]) is None


def test_a_list_to_tick_has_no_marked_answer() -> None:
    assert read_mark(["Which?", "❯ 1. ☐ Red", "  2. ☑ Blue"]) is None


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        ("2", ["2"]), ("yes", ["1"]), ("YES, AND  always", ["2"]), ("no", ["3"]), ("n", ["3"]),
        ("Y", ["1", "2"]), ("maybe", []), ("", []), ("4", []),
    ],
)  # fmt: skip
def test_a_choice_is_meant_by_its_key_its_words_or_the_first_of_them(
    said: str, keys: list[str]
) -> None:
    texts = enumerate(["Yes", "Yes, and always", "No, and stop"], 1)
    question = Question("?", tuple(Choice(str(n), text) for n, text in texts))
    assert [choice.key for choice in match_choices(question, said)] == keys


@given(st.lists(st.text(max_size=40), max_size=50), st.text(max_size=20))
def test_no_screen_is_too_odd(lines: list[str], line: str) -> None:
    found = read_question(lines, line)
    found.text.encode()
    read_mark(lines)
