"""Outside text is shown, never obeyed: a corpus through every widget."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.conftest import Stage
from tmuxorch.adapters.store.records import open_store
from tmuxorch.adapters.store.rows import entry_of
from tmuxorch.core.literal import literal
from tmuxorch.model import Reason
from tmuxorch.tui.ansi import screen_lines
from tmuxorch.tui.lines import diff_lines

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
CORPUS = [
    "[bold red]markup[/]",
    "[@click=app.quit]quit[/]",
    "[/nothing] [link=http://x]x[/link] \\[ ]",
    "\x1b]0;title\x07after",
    "\x1b]52;c;aGk=\x07after",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[Hcleared",
    "\x1bP1$r\x1b\\dcs",
    "\x9b31mc1",
    "a\rb\x08c\x07d\x00e\x7f",
    "\u202eoverridden\u202c",
    "\u2066isolated\u2069",
    "tab\there",
    "wide 日本語 e\u0301 👩\u200d💻",
]
EVIL = "\n".join(CORPUS)


@pytest.mark.parametrize("text", CORPUS)
def test_literal_text_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    assert not OBEYED.search(literal(text))
    for line in [*screen_lines(text), *diff_lines(text)]:
        assert not OBEYED.search("".join(part for part, _ in line.spans()))


def test_a_screen_keeps_its_colours_and_loses_every_other_escape() -> None:
    [line] = screen_lines("\x1b[1;31mred\x1b[0m \x1b]0;t\x07\x1b[38;2;1;2;3mrgb\x1b[48;5;99mback")
    assert [text for text, _ in line.spans()] == ["red", " ", "rgb", "back"]
    red, _, rgb, back = (style for _, style in line.spans())
    assert not isinstance(red, str)
    assert not isinstance(rgb, str)
    assert not isinstance(back, str)
    assert red.bold
    assert red.color is not None
    assert red.color.number == 1
    assert rgb.color is not None
    assert rgb.color.triplet == (1, 2, 3)
    assert back.bgcolor is not None
    assert back.bgcolor.number == 99


def test_colours_go_on_in_the_next_line_as_tmux_tells_them() -> None:
    first, second = screen_lines("\x1b[32mone\ntwo\x1b[39m")
    assert first.spans()[0][1] == second.spans()[0][1]


def _bury(stage: Stage) -> None:
    opened = open_store(str(stage.world.state))
    agent = opened.agents()[0]
    opened.record(agent, "noted", EVIL)
    entry = entry_of(
        id=agent.task.id, name=agent.task.name, repo=agent.task.repo, task=EVIL, agent="demo",
        branch=EVIL, branch_made=True, worktree="/w", copied=(),
        base="main", base_commit="0" * 40, head_commit=None, reason=Reason.USER, exit=None,
        created_at=1.0, removed_at=time.time(), duration_s=1.0, commits=0, files_changed=0,
        insertions=0, deletions=0, salvage_ref=None, archive=None, branch_kept=False,
        restored_at=None, last_screen=EVIL, kind=agent.task.kind, command=(), conversation=None,
    )  # fmt: skip
    with opened._write() as db:
        from tmuxorch.adapters.store.rows import columns_of_entry, insertion

        columns = columns_of_entry(entry)
        db.execute(insertion("history", columns), list(columns.values()))
    opened.close()


def test_no_widget_lets_outside_text_through(stage: Stage) -> None:
    script = Path(stage.world.directory) / "evil.txt"
    script.write_text(EVIL)
    made = stage.world.new(
        "-n", "a", EVIL.replace("\0", ""), "--", "sh", "-c", f"cat {script}; cat"
    )
    (Path(made["worktree"]) / "[bold]x[@click=app.quit].txt").write_text(EVIL.replace("\0", ""))
    (Path(made["worktree"]) / "new\x1b]0;t\x07line").write_text("x\n")
    _bury(stage)
    stage.record(
        "b", created_at=time.time() + 1, task=EVIL, branch=EVIL, agent=EVIL[:200], base=EVIL
    )

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: len(stage.names) == 2)
        seen = []
        steps = [
            ("tab", "[@click=app.quit]"), ("tab", "noted"), ("tab", "alive: pid"),
            ("tab", "cleared"), ("d", "[bold]x"), ("escape", ""), ("D", "[@click=app.quit]"),
            ("escape", ""), ("y", "noted"), ("escape", ""), ("H", "last screen"), ("escape", ""),
            ("j", ""), ("tab", "is not there"), ("d", "Remove b?"), ("escape", ""),
            ("n", "claude"), ("up", "[bold red]markup[/]"), ("escape", ""), ("r", "Rename"),
            ("escape", ""), ("a", ""), ("question_mark", "Agents"), ("escape", ""),
        ]  # fmt: skip
        for key, awaited in steps:
            await stage.press(key)
            if awaited:
                await stage.see(awaited)
            seen.append(stage.painted)
        stage.board.say(EVIL, "error")
        await stage.see("[bold red]markup")
        seen.append(stage.painted)
        for painted in seen:
            assert not OBEYED.search(painted)
        assert stage.app.is_running

    stage.size = (160, 60)
    stage.play(story)
