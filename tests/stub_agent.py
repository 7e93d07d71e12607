"""A program that draws an agent's screens and titles, and takes keys as that agent does.

Run in a terminal as `stub_agent.py STYLE`. The file `state` in its directory says what it does
(starting, idle, busy, asking), and what of its input goes wrong; `log` tells what it was given.
"""

# ruff: noqa: RUF001 -- the marks are those that the agents draw

from __future__ import annotations

import json
import os
import re
import select
import sys
import time
import tty
from pathlib import Path
from typing import Any, NamedTuple

RULE = "─" * 60
ANSWERS = {
    "claude": ["Yes", "Yes, and always allow it", "No"],
    "codex": ["Yes, proceed (y)", "No (esc)"],
    "gemini": ["Allow once", "No"],
    "opencode": ["Allow once", "Allow always", "Reject"],
    "aider": ["Yes", "No"],
}
ARROWS = {b"\x1b[C": 1, b"\x1b[B": 1, b"\x1b[D": -1, b"\x1b[A": -1}
ON, OFF = "\x1b[48;5;215m", "\x1b[48;5;234m"


class Now(NamedTuple):
    """What is to be drawn; `asks` is the question, `marked` the answer that the mark stands at."""

    state: str
    draft: list[str]
    queued: list[str]
    tick: int
    asks: str
    marked: int


def _answers(style: str, now: Now, mark: str) -> list[str]:
    blank = " " * len(mark)
    answers = enumerate(ANSWERS[style])
    return [f"{mark if n == now.marked else blank}{n + 1}. {answer}" for n, answer in answers]


def claude(now: Now) -> tuple[str, list[str]]:
    hint = ["Press up to edit queued messages"] if now.queued else ['\x1b[2mTry "fix it"\x1b[0m']
    box = [RULE, *_with_mark("❯ ", now.draft or hint), RULE]
    if now.state == "busy":
        line = f"✻ Cooking… ({now.tick}s · ↓ 20 tokens)"
        return f"{'⠂⠐'[now.tick % 2]} Task", [line, *box, "  esc to interrupt"]
    if now.state == "asking":
        asked = [f" {now.asks}", *_answers("claude", now, " ❯ ")]
        return "✳ Task", [RULE, *asked, " Esc to cancel"]
    return "✳ Task", ["● Done.", *box, "  ? for shortcuts"]


def codex(now: Now) -> tuple[str, list[str]]:
    box = _with_mark("› ", now.draft or ["\x1b[2mAsk Codex to do anything\x1b[0m"])
    screen = ["• I answer: one two", "", *box, "", "  gpt-5 · ~/wt"]
    if now.state == "busy":
        return f"{'⠋⠙'[now.tick % 2]} wt", screen
    if now.state == "asking":
        asked = ["  Would you like to run the following command?", "", f"  $ {now.asks}", ""]
        answers = [*_answers("codex", now, "› "), "", "  Press enter to confirm"]
        return f"[ {'!.'[now.tick % 2]} ] Action Required | wt", [*asked, *answers]
    return "wt", screen


def gemini(now: Now) -> tuple[str, list[str]]:
    box = [
        RULE,
        " Shift+Tab",
        "",
        *_with_mark(" > ", now.draft or ["  Type your message"]),
    ]
    if now.state == "busy":
        return "✦  Working… (wt)", [
            "✦ I answer",
            f" ⠸ Thinking (esc to cancel, {now.tick}s)",
            *box,
        ]
    if now.state == "asking":
        lines = [f"{now.asks} - Allow execution?", *_answers("gemini", now, "● ")]
        framed = [f"│ {line}" for line in lines]
        return "✋  Action Required (wt)", ["╭──────╮", *framed, "╰──────╯"]
    return "◇  Ready (wt)", ["✦ Done.", *box, "", " workspace"]


def opencode(now: Now) -> tuple[str, list[str]]:
    shown = ["[Pasted ~2 lines]"] if len(now.draft) > 1 else now.draft or [""]
    said = [f"  ┃  {line}" for text in now.queued for line in [*text.split("\n"), " QUEUED"]]
    box = ["  ┃", *(f"  ┃  {line}" for line in shown), "  ┃  Build · lab", "  ╹" + "▀" * 60]
    if now.state == "asking":
        asked = ["  ┃  △ Permission required", f"  ┃    $ {now.asks}"]
        answers = enumerate(ANSWERS["opencode"])
        drawn = [f"{ON if n == now.marked else OFF} {answer} {OFF}" for n, answer in answers]
        row = " ".join(drawn)
        return "OC | Task", [*asked, f"  ┃{OFF}  {row}  ⇆ select  enter confirm\x1b[0m"]
    foot = "  ■■⬝  esc interrupt  ctrl+p commands" if now.state == "busy" else "   ctrl+p commands"
    return "OC | Task", [*said, "", *box, foot]


def aider(now: Now) -> tuple[str, list[str]]:
    if now.state == "busy":
        return "host", [RULE, "> ", RULE, "> go", "", f"I answer: {now.tick}"]
    if now.state == "asking":
        asked = f"{now.asks} (Y)es/(N)o [Yes]: {''.join(now.draft)}"
        return "host", [RULE, "> go", "", "out.txt", asked]
    return "host", ["Tokens: 1 sent, 1 received.", RULE, *_with_mark("> ", now.draft or [""], "")]


STYLES = {f.__name__: f for f in (claude, codex, gemini, opencode, aider)}


def _with_mark(mark: str, lines: list[str], indent: str | None = None) -> list[str]:
    space = " " * len(mark) if indent is None else indent
    return [mark + lines[0], *(space + line for line in lines[1:])]


class Stub:
    def __init__(self, style: str) -> None:
        self.draw_lines = STYLES[style]
        self.style = style
        self.draft = ""
        self.queued: list[str] = []
        self.pasted_at = 0.0
        self.enters = 0
        self.marked = 0
        self.drawn: tuple[str, list[str]] | None = None

    def wish(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(Path("state").read_text())
        except (OSError, ValueError):
            found = {}
        usual = {"deaf_s": 0.0, "ignores": 0, "shows_after_s": 0.0, "asks": "Do you want to go on?"}
        return {"does": "starting", **usual, **found}

    def log(self, what: str, text: str) -> None:
        with open("log", "a") as f:
            f.write(json.dumps([what, text]) + "\n")

    def become(self, does: str) -> None:
        Path("state.new").write_text(json.dumps({**self.wish(), "does": does}))
        os.rename("state.new", "state")

    def draw(self) -> None:
        wish = self.wish()
        if wish["does"] == "starting":
            return
        is_hidden = time.monotonic() < self.pasted_at + wish["shows_after_s"]
        draft = self.draft.split("\n") if self.draft and not is_hidden else []
        tick = int(time.monotonic() * 5)
        title, lines = self.draw_lines(
            Now(wish["does"], draft, self.queued, tick, wish["asks"], self.marked)
        )
        if (title, lines) != self.drawn:
            self.drawn = title, lines
            text = "\r\n".join(lines)
            os.write(1, f"\x1b]2;{title}\x07\x1b[H\x1b[2J{text}".encode())

    def paste(self, text: str) -> None:
        wish = self.wish()
        if wish.get("asks_on_paste"):
            self.become("asking")
        self.log("pasted", text)
        if wish["does"] != "asking":
            self.draft += text
            self.pasted_at = time.monotonic()

    def enter(self) -> None:
        wish = self.wish()
        self.enters += 1
        if wish["does"] == "asking":
            self.answer()
        elif time.monotonic() < self.pasted_at + wish["deaf_s"] or self.enters <= wish["ignores"]:
            self.log("ignored", "")
        elif self.draft:
            if wish["does"] == "busy" and self.style in ("claude", "opencode"):
                self.queued.append(self.draft)
            self.log("taken", self.draft)
            if self.draft == "/exit":
                sys.exit()
            if wish.get("works_then"):
                self.become("busy")
            self.draft = ""

    def answer(self) -> None:
        """Enter into the dialog: what was typed is taken, else what is marked."""
        answers = ANSWERS[self.style]
        typed = [a for a in answers if self.draft and a.lower().startswith(self.draft)]
        self.log("chosen", (typed or [answers[self.marked]])[0])
        self.draft, self.marked = "", 0
        self.become("idle")

    def type(self, text: str) -> None:
        wish = self.wish()
        answers = ANSWERS[self.style]
        if wish["does"] != "asking" or self.style == "aider":
            self.draft += text
        elif text.isdigit() and wish.get("keys_move"):
            self.marked = int(text) - 1
        elif text.isdigit() and self.style != "opencode" and not wish.get("obeys_no_key"):
            self.log("chosen", answers[int(text) - 1])
            self.become("idle")

    def move(self, by: int) -> None:
        self.marked = (self.marked + by) % len(ANSWERS[self.style])

    def run(self) -> None:
        tty.setraw(0)
        os.write(1, b"\x1b[?2004h")
        pending = b""
        while True:
            self.draw()
            if select.select([0], [], [], 0.02)[0]:
                pending += os.read(0, 65536)
            while pending:
                if pending.startswith(b"\x1b[200~"):
                    end = pending.find(b"\x1b[201~")
                    if end < 0:
                        break
                    self.paste(pending[6:end].decode())
                    pending = pending[end + 6 :]
                elif pending[:3] in ARROWS:
                    self.move(ARROWS[pending[:3]])
                    pending = pending[3:]
                elif pending.startswith(b"\r"):
                    self.enter()
                    pending = pending[1:]
                else:
                    typed = re.match(rb"[^\r\x1b]*|\x1b", pending)
                    assert typed is not None
                    self.type(typed[0].decode())
                    pending = pending[typed.end() :]
                self.draw()


if __name__ == "__main__":
    Stub(sys.argv[1]).run()
