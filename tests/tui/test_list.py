"""The list of agents: what it shows, and moving about in it."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from textual.pilot import Pilot

from tests.tui.conftest import Stage
from tmuxorch.adapters.store import records
from tmuxorch.adapters.system import procfs
from tmuxorch.model import Exit, State, Status


def test_agents_stand_below_their_repository_and_waiting_ones_come_first(stage: Stage) -> None:
    stage.repo = None
    stage.record("one", repo="/src/shop")
    stage.record("two", Status.WAITING, repo="/src/shop")
    stage.record("three", repo="/src/bank")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: len(stage.names) == 3)
        lines = [line.split() for line in stage.list.splitlines()]
        assert lines[0] == ["bank", "1"]
        assert lines[1][:3] == ["●", "working", "three"]
        assert lines[2] == ["shop", "2"]
        assert lines[3][:3] == ["◆", "waiting", "two"]
        assert lines[4][:3] == ["●", "working", "one"]
        assert "1 waiting" in stage.headline
        assert "2 working" in stage.headline

    stage.play(story)


def test_keys_move_the_selection(stage: Stage) -> None:
    for name in "abcde":
        stage.record(name)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        for key, now in [
            ("j", "b"),
            ("down", "c"),
            ("k", "b"),
            ("up", "a"),
            ("up", "a"),
            ("G", "e"),
            ("j", "e"),
            ("g", "a"),
            ("end", "e"),
            ("home", "a"),
            ("3", "c"),
            ("9", "c"),
        ]:
            await stage.press(key)
            assert stage.selected == now, key

    stage.play(story)


def test_w_goes_from_one_waiting_agent_to_the_next(stage: Stage) -> None:
    stage.record("a")
    stage.record("b", Status.WAITING)
    stage.record("c", Status.WAITING)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.names == ["b", "c", "a"])
        await stage.press("G")
        for now in ("b", "c", "b"):
            await stage.press("w")
            assert stage.selected == now

    stage.play(story)


def test_marks_are_shown_counted_and_cleared(stage: Stage) -> None:
    for name in "abc":
        stage.record(name)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("space", "space")
        assert stage.marked == {"a", "b"}
        assert "2 marked" in stage.headline
        await stage.press("asterisk")
        assert stage.marked == {"a", "b", "c"}
        await stage.press("asterisk")
        assert stage.marked == set()
        await stage.press("asterisk", "escape")
        assert stage.marked == set()

    stage.play(story)


def test_the_filter_narrows_the_list_by_name_task_and_status(stage: Stage) -> None:
    stage.record("login", task="Fix the redirect")
    stage.record("tests", Status.WAITING)
    stage.record("guide")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: len(stage.names) == 3)
        await stage.press("slash", *"redir")
        assert stage.names == ["login"]
        await stage.press("enter", "escape")
        assert len(stage.names) == 3
        await stage.press("slash", *"waiting", "enter")
        assert stage.names == ["tests"]
        await stage.press("slash", *"zzz")
        await stage.see("no agent fits")
        await stage.press("escape")
        assert len(stage.names) == 3

    stage.play(story)


def test_a_shows_all_repositories_and_back(stage: Stage) -> None:
    stage.record("here")
    stage.record("there", repo="/src/other")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.names == ["here"])
        await stage.press("a")
        assert set(stage.names) == {"here", "there"}
        await stage.press("a")
        assert stage.names == ["here"]

    stage.play(story)


def test_an_empty_list_tells_a_newcomer_what_to_press(stage: Stage) -> None:
    async def story(_: Pilot[None]) -> None:
        await stage.see("No agents yet.")
        assert "n      gives one a task" in stage.painted
        assert "demo" in stage.painted

    stage.play(story)


def test_outside_a_repository_it_says_so(stage: Stage) -> None:
    stage.repo = None

    async def story(_: Pilot[None]) -> None:
        await stage.see("this is no git repository")
        await stage.press("n")
        await stage.see("needs a git repository")

    stage.play(story)


def test_a_killed_process_is_seen_without_anybody_writing_it_down(stage: Stage) -> None:
    sleeper = subprocess.Popen(["sleep", "1000"])
    stage.record("a", process=procfs.identify(sleeper.pid))

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: "working" in stage.list)
        os.kill(sleeper.pid, signal.SIGKILL)
        await stage.until(lambda: "□ ended    a" in stage.list)
        assert "1 ended" in stage.headline

    stage.play(story)
    sleeper.wait()


def test_what_others_write_into_the_store_appears(stage: Stage) -> None:
    agent = stage.record("a")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.names == ["a"])
        opened = records.open_store(str(stage.world.state))
        opened.swap(agent, expect=[State.RUNNING], status=Status.WAITING)
        opened.close()
        await stage.until(lambda: "◆ waiting  a" in stage.list)
        stage.record("b")
        await stage.until(lambda: stage.names == ["a", "b"])

    stage.play(story)


def test_the_selected_agent_stays_selected_when_the_order_changes(stage: Stage) -> None:
    stage.record("a")
    second = stage.record("b")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        opened = records.open_store(str(stage.world.state))
        opened.swap(second, expect=[State.RUNNING], status=Status.WAITING)
        opened.close()
        await stage.until(lambda: stage.names == ["b", "a"])
        assert stage.selected == "a"

    stage.play(story)


def test_the_bottom_line_offers_what_works_for_the_selected_agent(stage: Stage) -> None:
    stage.record("alive")
    stage.record("ended", state=State.EXITED, exit=Exit(0, None))

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "alive")
        assert " i send " in stage.footer
        assert " x stop " in stage.footer
        await stage.press("j")
        assert "send" not in stage.footer
        assert "stop" not in stage.footer
        assert " R restart " in stage.footer

    stage.play(story)


def test_keys_can_be_changed_in_the_config(stage: Stage) -> None:
    stage.keys = {"down": "ctrl+d", "remove": "X", "nonsense": "z"}
    stage.record("a")
    stage.record("b")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        assert "no such action: nonsense" in stage.said
        await stage.press("j")
        assert stage.selected == "a"
        await stage.press("ctrl+d")
        assert stage.selected == "b"
        assert " X remove " in stage.footer
        await stage.press("question_mark")
        await stage.see("^d")

    stage.play(story)


def test_the_help_lists_every_binding(stage: Stage) -> None:
    stage.record("a")
    stage.size = (120, 60)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("question_mark")
        await stage.see("next waiting")
        for words in ("attach", "merge", "next waiting", "all repositories", "sweep", "quit"):
            assert words in stage.painted
        await stage.press("escape")
        assert stage.on_board

    stage.play(story)


def test_a_click_selects_and_the_tabs_can_be_clicked(stage: Stage) -> None:
    stage.record("a")
    stage.record("b")

    async def story(pilot: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await pilot.click("AgentList", offset=(5, 1))
        assert stage.selected == "b"
        await pilot.click("TabBar", offset=(10, 0))
        assert stage.board.tab == "diff"
        await stage.press("tab")
        assert stage.board.tab == "timeline"
        await stage.press("shift+tab", "shift+tab")
        assert stage.board.tab == "screen"

    stage.play(story)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (160, 45), (300, 80)])
def test_it_fits_every_terminal(stage: Stage, size: tuple[int, int]) -> None:
    stage.size = size
    stage.record("login-redirect", Status.WAITING)

    async def story(_: Pilot[None]) -> None:
        await stage.see("◆ waiting  login-redirect")
        rows = stage.painted.split("\n")
        assert len(rows) == size[1]
        assert "1 waiting" in rows[0]
        assert "attach" in rows[-1]
        assert "Screen" in stage.painted

    stage.play(story)


def test_three_hundred_agents_scroll(stage: Stage) -> None:
    for n in range(300):
        stage.record(f"agent-{n:03}")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: len(stage.names) == 300)
        await stage.press("G")
        await stage.see("working  agent-299")
        await stage.press("g")
        await stage.see("working  agent-000")

    stage.play(story)


def test_q_quits(stage: Stage) -> None:
    async def story(_: Pilot[None]) -> None:
        await stage.press("q")
        await stage.until(lambda: not stage.app.is_running)

    stage.play(story)
