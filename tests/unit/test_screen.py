"""What an agent is doing, from screens as the agents draw them."""

# ruff: noqa: RUF001 -- the marks are those that the agents draw

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmuxorch import config
from tmuxorch.config.profiles import Profile
from tmuxorch.core.screen import LINE_MAX, read_screen, read_title
from tmuxorch.model import Kind, Status

BUILT_IN = config.load("/nonexistent/config.toml", None).agents
WORKING, WAITING, IDLE = Status.WORKING, Status.WAITING, Status.IDLE


def read_status(profile: Profile, lines: Sequence[str]) -> Status | None:
    said = read_screen(profile, lines)
    return said.status if said else None


SCREENS = {
    "claude has just started": ("claude", IDLE, """
 ▐▛███▜▌   Claude Code v2.1.0
▝▜█████▛▘  Opus · Claude Max
  ▘▘ ▝▝    /home/u/worktrees/fix

────────────────────────────────────────────────────────────
❯ Try "fix lint errors"
────────────────────────────────────────────────────────────
  ? for shortcuts
"""),
    "claude works, with its empty prompt below": ("claude", WORKING, """
❯ Fix the login redirect

● I'll look at the router first.

● Read(src/router.py)
  ⎿  Read 120 lines

✻ Pondering… (12s · ↑ 1.2k tokens · esc to interrupt)

────────────────────────────────────────────────────────────
❯
────────────────────────────────────────────────────────────
  ? for shortcuts
"""),
    "claude works, with its tasks between": ("claude", WORKING, """
✽ Writing tests… (2m 3s · thinking)
  ⎿  ☒ Read the router
     ☐ Fix the redirect
     ☐ Write tests

╭──────────────────────────────────────────────────────────╮
│ >                                                        │
╰──────────────────────────────────────────────────────────╯
  ⏵⏵ accept edits on (shift+tab to cycle)
"""),
    "claude asks, an old busy line above": ("claude", WAITING, """
✻ Pondering… (12s · ↑ 1.2k tokens · esc to interrupt)

╭──────────────────────────────────────────────────────────╮
│ Bash command                                             │
│                                                          │
│   rm -rf build                                           │
│   Remove build output                                    │
│                                                          │
│ Do you want to proceed?                                  │
│ ❯ 1. Yes                                                 │
│   2. Yes, and don't ask again for rm commands            │
│   3. No, and tell Claude what to do differently (esc)    │
╰──────────────────────────────────────────────────────────╯
"""),
    "claude asks, the second answer chosen": ("claude", WAITING, """
 Do you want to make this edit to app.py?
   1. Yes
 ❯ 2. Yes, allow all edits during this session (shift+tab)
   3. No

 Esc to cancel · Tab to amend
"""),
    "claude asks with boxes to tick": ("claude", WAITING, """
 Which checks should run?

 ❯ ☐ 1. Unit tests
   ☐ 2. Type something.

 Enter to select · ↑/↓ to navigate
"""),
    "claude asks whether it is trusted": ("claude", WAITING, """
 Do you trust the files in this folder?

 /home/u/worktrees/fix

 ❯ 1. Yes, proceed
   2. No, exit

 Enter to confirm
"""),
    "claude asks whether it is trusted, no chosen": ("claude", WAITING, """
 Security guide

   Yes, I trust this folder
 ❯ No, exit
"""),
    "claude works on after an answer": ("claude", WORKING, """
● The dialog says: Do you want to proceed?

✶ Cooking… (3s · ↓ 20 tokens)

────────────────────────────────────────
❯
────────────────────────────────────────
"""),
    "claude is done": ("claude", IDLE, """
● I fixed the redirect and added a test.

✻ Crunched for 1m 12s

────────────────────────────────────────────────────────────
❯
────────────────────────────────────────────────────────────
  ⏵⏵ bypass permissions on (shift+tab to cycle)
"""),
    "claude quotes a question when done": ("claude", IDLE, """
● The script prints "Do you want to continue?" and then reads a line.

────────────────────────────────────────
❯ and then
────────────────────────────────────────
"""),
    "codex has just started": ("codex", IDLE, """
╭────────────────────────────────────────────╮
│ >_ OpenAI Codex (v0.50.0)                  │
╰────────────────────────────────────────────╯

› Ask Codex to do anything

  100% context left
"""),
    "codex works, with its prompt below": ("codex", WORKING, """
› Fix the login redirect

• Explored
  └ Read router.py

• Working (3s • esc to interrupt)

› Summarize recent commits

  98% context left · ? for shortcuts
"""),
    "codex asks": ("codex", WAITING, """
• Working (12s • esc to interrupt)

  Would you like to run the following command?

  $ open -a "Browser"

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for this command (p)
  3. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
"""),
    "codex asks whether it is trusted": ("codex", WAITING, """
> You are in /home/u/worktrees/fix

  Do you trust the contents of this directory? Working with untrusted contents

› 1. Yes, continue
  2. No, quit

  Press enter to continue
"""),
    "codex quotes a question when done": ("codex", IDLE, """
• The ticket says: "Would you like to run the following command?"

› Run /review on my current changes

  gpt-5 default · /root/wt
"""),
    "gemini has just started": ("gemini", IDLE, """
Tips for getting started:
1. Ask questions, edit files, or run commands.

╭───────────────────────────────────────────╮
│ >   Type your message or @path/to/file    │
╰───────────────────────────────────────────╯
 ~/wt (main*)          no sandbox         gemini-pro (100% context left)
"""),
    "gemini works, with its prompt below": ("gemini", WORKING, """
 > Fix the login redirect

⠏ Consulting the manual (esc to cancel, 4s)

╭───────────────────────────────────────────╮
│ >   Type your message or @path/to/file    │
╰───────────────────────────────────────────╯
 ~/wt (main*)          no sandbox         gemini-pro (99% context left)
"""),
    "gemini asks": ("gemini", WAITING, """
╭───────────────────────────────────────────╮
│ ?  Shell rm -rf build                     │
│                                           │
│ Allow execution of: 'rm'?                 │
│                                           │
│ ● 1. Yes, allow once                      │
│   2. Yes, allow always ...                │
│   3. No, suggest changes (esc)            │
╰───────────────────────────────────────────╯

⠏ Waiting for user confirmation...
"""),
    "aider has just started": ("aider", IDLE, """
Aider v0.86.0
Main model: gpt-5 with diff edit format
Git repo: .git with 12 files
────────────────────────────────────────────
>
"""),
    "aider works": ("aider", WORKING, """
────────────────────────────────────────────
> fix the login redirect

░█        Waiting for openai/gpt-5
"""),
    "aider asks": ("aider", WAITING, """
> fix the login redirect

src/router.py
Add file to the chat? (Y)es/(N)o/(D)on't ask again [Yes]:
"""),
    "aider is done after an answered question": ("aider", IDLE, """
Add .aider* to .gitignore (recommended)? (Y)es/(N)o [Yes]: y
Added .aider* to .gitignore
Tokens: 2.1k sent, 120 received.
────────────────────────────────────────────
architect>
"""),
    "aider tells of waiting when done": ("aider", IDLE, """
The test was Waiting for the lock for ever.
Waiting for the lock is what it did.
────────────────────────────────────────────
>
"""),
    "opencode has just started": ("opencode", IDLE, """
                 ┃  Ask anything... "Fix a TODO in the codebase"
                 ┃
                 ┃  Build  Claude Opus
                                  tab agents  ctrl+p commands
"""),
    "opencode works": ("opencode", WORKING, """
  ┃  Fix the login redirect
  ⠋ Thinking

  ┃
  ┃  Build  Claude Opus
   ■■■⬝⬝⬝⬝⬝  esc interrupt          tab agents  ctrl+p commands
"""),
    "opencode asks": ("opencode", WAITING, """
  △ Permission required
  → Read .env

   Allow once   Allow always   Reject      ⇆ select  enter confirm
"""),
    "claude asks with choices below a rule": ("claude", WAITING, """
❯ Ask me
────────────────────────────────────────
 ☐ Colour

Which colour should it be?

  1. Red
     red one
  2. Type something.
────────────────────────────────────────
❯ 3. Chat about this

Enter to select · ↑/↓ to navigate · Esc to cancel

  1 tasks (0 done, 1 open)
"""),
    "claude is not logged in": ("claude", WAITING, """
❯ Fix the login redirect
  ⎿  Not logged in · Please run /login

✻ Churned for 0s

────────────────────────────────────────────────────────────
❯
────────────────────────────────────────────────────────────
  ? for shortcuts                    Not logged in · Run /login
"""),
    "claude has logged in since": ("claude", IDLE, """
  ⎿  Not logged in · Please run /login
❯ /login
  ⎿  Login successful
────────────────────────────────────────────────────────────
❯
────────────────────────────────────────────────────────────
  ? for shortcuts
"""),
    "claude holds a draft that looks like an answer": ("claude", IDLE, """
● Done.
────────────────────────────────────────────────────────────
❯ 1. Do you want to proceed? is what it asks
  2. tell me why
────────────────────────────────────────────────────────────
  ? for shortcuts
"""),
    "claude quotes the question of trust when done": ("claude", IDLE, """
● It says: Do you trust the files in this folder?
────────────────────────────────────────────────────────────
❯
────────────────────────────────────────────────────────────
"""),
    "claude has queued a message": ("claude", WORKING, """
* Bloviating… (5s · ↓ 19 tokens)
  ❯ and then the tests
────────────────────────────────────────
❯ Press up to edit queued messages
────────────────────────────────────────
  esc to interrupt · ← for agents
"""),
    "codex asks whether it is trusted, in its new words": ("codex", WAITING, """
  Folder access
  /home/u/worktrees/fix

  Trust this folder? Codex can read, edit, and run files here.

› 1. Trust and continue
  2. Back to Agent Command Center

  enter continue · esc back
"""),
    "codex asks for a review of hooks": ("codex", WAITING, """
  Hooks need review
  5 hooks are new or changed.

› 1. Review hooks
  2. Trust all and continue

  enter confirm · esc skip
"""),
    "gemini asks a question of its own": ("gemini", WAITING, """
╭──────────────────────────────────────────╮
│ Answer Questions                         │
│                                          │
│ Which colour should it be?               │
│                                          │
│ ● 1.  Red                                │
│   2.  Blue                               │
│                                          │
│ Enter to select · ↑/↓ to navigate        │
╰──────────────────────────────────────────╯
"""),
    "gemini asks how to log in": ("gemini", WAITING, """
│ ? Get started                                          │
│   How would you like to authenticate for this project? │
│     1. Sign in with Google                             │
│   ● 2. Use Gemini API Key                              │
│   (Use Enter to select)                                │
"""),
    "gemini asks for its key": ("gemini", WAITING, """
✕ [API Error: Content generator not initialized]
╭──────────────────────────────────────────╮
│ Enter Gemini API Key                     │
│ ╭──────────────────────────────────────╮ │
│ │                                      │ │
│ ╰──────────────────────────────────────╯ │
│ (Press Enter to submit, Esc to cancel)   │
╰──────────────────────────────────────────╯
"""),
    "gemini is done, with a draft in its box": ("gemini", IDLE, """
✦ Done.
────────────────────────────────────────────
 Shift+Tab to accept edits

 > and now the
   tests

 workspace (/directory)       no sandbox    /model
 ~/wt                         no sandbox    Auto
"""),
    "aider answers, old empty prompts above": ("aider", WORKING, """
Tokens: 1.1k sent, 1.7k received.
────────────────────────────────────────────
>
────────────────────────────────────────────
> fix the login redirect

I shall look at the router
"""),
    "aider is done, with a draft": ("aider", IDLE, """
Tokens: 1.1k sent, 1.7k received.
────────────────────────────────────────────
made.txt
> and now the
"""),
    "opencode asks a question of its own": ("opencode", WAITING, """
     → Asked 1 question
  ┃
  ┃  Which colour should it be?
  ┃
  ┃  1. Red
  ┃  2. Type your own answer
  ┃
  ┃  ↑↓ select  enter submit  esc dismiss
"""),
    "demo works": ("demo", WORKING, "Task: x\n* Making a plan... (ctrl-c to stop)"),
    "demo is done": ("demo", IDLE, "Task: x\nDone.\n> "),
    "a shell says nothing": ("shell", None, "$ make\nok\n$ "),
    "claude draws nothing yet": ("claude", None, "\n\n  \n"),
    "claude prints something else": ("claude", None, "Updating claude to 2.1.1\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", SCREENS)
def test_a_screen_is_understood(what: str) -> None:
    agent, status, screen = SCREENS[what]
    assert read_status(BUILT_IN[agent], screen.splitlines()) is status


@pytest.mark.parametrize("what", SCREENS)
def test_blank_lines_below_do_not_matter(what: str) -> None:
    agent, status, screen = SCREENS[what]
    padded = [*screen.splitlines(), *[" " * 80] * 40]
    assert read_status(BUILT_IN[agent], padded) is status


def test_only_the_last_lines_count() -> None:
    profile = Profile(name="x", command=("x",), kind=Kind.WORKER, busy="busy", region=3)
    assert read_status(profile, ["busy", "", "1", " ", "2"]) is WORKING
    assert read_status(profile, ["busy", "", "1", " ", "2", "3"]) is None


def test_a_pattern_that_is_left_empty_matches_nothing() -> None:
    profile = Profile(name="x", command=("x",), kind=Kind.WORKER)
    assert read_status(profile, ["anything"]) is None
    assert read_status(replace(profile, ready="^any"), ["anything"]) is IDLE


def test_a_pattern_that_takes_in_the_line_break_does_not_reach_the_next_line() -> None:
    profile = Profile(name="x", command=("x",), kind=Kind.WORKER, waiting=r"Sure\?\s*", busy="busy")
    assert read_status(profile, ["Sure?", "busy"]) is WORKING


def test_the_far_end_of_an_endless_line_is_not_looked_at() -> None:
    profile = Profile(name="x", command=("x",), kind=Kind.WORKER, busy="busy")
    assert read_status(profile, ["x" * LINE_MAX + "busy"]) is None
    assert read_status(profile, ["busy" + "x" * LINE_MAX]) is WORKING


@pytest.mark.parametrize(
    ("agent", "title", "status"),
    [
        ("claude", "⠂ Fix the login redirect", WORKING),
        ("claude", "⠐ Fix the login redirect", WORKING),
        ("claude", "✳ Fix the login redirect", IDLE),
        ("claude", "Fix the login redirect", None),
        ("codex", "⠧ fix-login", WORKING),
        ("codex", "[ ! ] Action Required | fix-login", WAITING),
        ("codex", "[ . ] Action Required | fix-login", WAITING),
        ("codex", "fix-login", None),
        ("gemini", "✦  Working… (fix-login)", WORKING),
        ("gemini", "✋  Action Required (fix-login)", WAITING),
        ("gemini", "◇  Ready (fix-login)          ", IDLE),
        ("opencode", "OC | ✳ Fix the login", None),
        ("aider", "machine", None),
        ("shell", "", None),
    ],
)
def test_a_title_is_understood(agent: str, title: str, status: Status | None) -> None:
    said = read_title(BUILT_IN[agent], title)
    assert (said.status if said else None) is status
    assert said is None or said.line == title.strip()


def test_the_line_that_decided_is_told_without_its_frame() -> None:
    lines = ["│ Do you want to proceed?      │", "│ ❯ 1. Yes                     │"]
    said = read_screen(BUILT_IN["claude"], lines)
    assert said is not None
    assert said.line == "❯ 1. Yes"


PIECES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["❯", "> ", "│", " " * 50, "\t", "… (", "✻ ", "esc to interrupt", "Do you want to ", "\r",
         "❯ 1. ", "Waiting for ", "(Y)es/(N)o", "- " * 20, "\ud800", "\u2028", "\0"]
    ),
)  # fmt: skip
LINES = st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=40)


@given(st.sampled_from(sorted(BUILT_IN)), LINES)
def test_no_text_is_too_odd(agent: str, lines: list[str]) -> None:
    assert read_status(BUILT_IN[agent], lines) in (WORKING, WAITING, IDLE, None)


@given(st.sampled_from(sorted(BUILT_IN)), LINES)
def test_what_scrolled_away_changes_nothing(agent: str, lines: list[str]) -> None:
    profile = BUILT_IN[agent]
    tail = [*lines, *["plain text"] * profile.region]
    assert read_status(profile, tail) is read_status(profile, tail[-profile.region :])


HOSTILE = [" ", "│ ", "a -", "-", "a", "❯", "✻ x", "* x… ", "░", "…", "\t", "> ", "esc "]


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(BUILT_IN)), st.sampled_from(HOSTILE), st.sampled_from(HOSTILE))
def test_a_hostile_screen_cannot_hold_it_up(agent: str, filler: str, other: str) -> None:
    # A pattern that takes exponential time on it would run into the test's time-out.
    long = (filler * 200_000 + other) * 2
    read_status(BUILT_IN[agent], [long] * 50)
