"""Keys that do something to agents: real tmux, real git, real processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.conftest import World, wait_for
from tests.staging import Stage as StubWorker
from tests.tui.conftest import Stage
from tmuxorch.adapters.store.records import open_store
from tmuxorch.model import State
from tmuxorch.tui.screens.confirmation import Confirmation
from tmuxorch.tui.screens.page import Page
from tmuxorch.tui.screens.triage import Triage
from tmuxorch.tui.screens.worker_form import WorkerForm
from tmuxorch.tui.screens.write import WriteMessage

READER = ("--", "sh", "-c", "echo I am the agent; cat >out.txt")


def received(worker: dict[str, Any]) -> str:
    path = Path(worker["worktree"]) / "out.txt"
    return path.read_text() if path.exists() else ""


def work(worker: dict[str, Any]) -> Path:
    path = Path(worker["worktree"]) / "precious.txt"
    path.write_text("work\n")
    return path


def test_n_makes_a_worker_from_a_task(stage: Stage) -> None:
    async def story(_: Pilot[None]) -> None:
        await stage.press("n")
        assert isinstance(stage.app.screen, WorkerForm)
        await stage.press(*"Fix login", "ctrl+j", *"soon", "tab", *"demo", "tab", "tab", *"my-name")
        await stage.press("enter")
        await stage.until(lambda: stage.selected == "my-name")
        await stage.until(lambda: "Task: Fix login" in stage.view, "the live screen")

    stage.play(story)
    [made] = stage.world.json("ls")
    assert (made["name"], made["agent"], made["task"]) == ("my-name", "demo", "Fix login\nsoon")


def test_the_form_offers_earlier_tasks_and_refuses_an_unknown_agent(stage: Stage) -> None:
    stage.record("a", task="An earlier task")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("n")
        await stage.see("main")  # the base is known, so the rest is too
        await stage.press("up")
        await stage.see("An earlier task")
        await stage.press("down", "tab", *"nobody", "enter")
        await stage.see("there is no agent 'nobody'")
        await stage.press("escape")
        assert stage.on_board

    stage.play(story)
    assert len(stage.world.json("ls")) == 1


def test_the_form_completes_a_base(stage: Stage) -> None:
    stage.world.git("branch", "release/(b)2")

    async def story(_: Pilot[None]) -> None:
        await stage.press("n")
        await stage.see("main")  # the base is known, so the rest is too
        await stage.press(*"x", "tab", *"demo", "tab", *"rel")
        await stage.see("release/(b)2")
        await stage.press("right", "enter")
        await stage.until(lambda: stage.selected == "x")

    stage.play(story)
    assert [made["base"] for made in stage.world.json("ls")] == ["release/(b)2"]


def test_a_worker_that_cannot_be_made_is_explained(stage: Stage) -> None:
    async def story(_: Pilot[None]) -> None:
        await stage.press("n", *"x", "tab", *"demo", "tab", *"no-such-branch", "enter")
        await stage.until(lambda: "no-such-branch" in stage.said)

    stage.play(story)
    assert stage.world.json("ls") == []


def test_enter_attaches_and_t_opens_a_shell(stage: Stage) -> None:
    made = stage.world.new("-n", "a", *READER)
    stage.environ["TMUX"] = "/nowhere/else,1,0"

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: "I am the agent" in stage.view)
        await stage.press("enter")
        await stage.until(lambda: stage.terminal.lent)
        argv, environ, _cwd = stage.terminal.lent[0]
        assert list(argv[-3:]) == ["attach-session", "-t", made["tmux"]["pane"]]
        assert stage.world.socket in argv
        assert "TMUX" not in environ
        await stage.press("t")
        assert stage.terminal.lent[1][2] == made["worktree"]

    stage.play(story)


def test_attaching_to_one_that_died_is_a_sentence(stage: Stage) -> None:
    stage.record("ghost")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "ghost")
        await stage.press("enter")
        await stage.until(lambda: "ghost has no window" in stage.said)
        assert not stage.terminal.lent

    stage.play(story)


def test_i_sends_to_the_selected_and_to_all_marked(stage: Stage) -> None:
    a = stage.world.new("-n", "a", *READER)
    b = stage.world.new("-n", "b", *READER)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.names == ["a", "b"])
        await stage.press("i", *"to one", "enter")
        await stage.until(lambda: received(a) == "to one\n")
        assert received(b) == ""
        await stage.press("asterisk", "i")
        await stage.see("Send to 2 agents")
        await stage.press(*"to both", "enter")
        await stage.until(lambda: received(a) == "to one\nto both\n")
        await stage.until(lambda: received(b) == "to both\n")
        await stage.press("i", *"never", "escape")

    stage.play(story)
    assert "never" not in received(a)


def test_a_message_that_was_refused_keeps_its_draft(stage: Stage) -> None:
    worker = StubWorker(stage.world, "claude")
    worker.does("asking", asks="May I touch it?")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("i", *"do not", "enter")
        await stage.see("nothing was sent")
        await stage.see("May I touch it?")
        await stage.see("do not")
        assert isinstance(stage.app.screen, WriteMessage)
        worker.does("idle")
        await stage.press("enter")
        await stage.until(lambda: worker.taken() == ["do not"])

    stage.play(story)
    assert worker.log() == [("pasted", "do not"), ("taken", "do not")]


def test_d_says_what_is_at_stake_and_escape_keeps_it(stage: Stage) -> None:
    made = stage.world.new("-n", "a", *READER)
    path = work(made)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("d")
        await stage.see("precious.txt")
        assert isinstance(stage.app.screen, Confirmation)
        await stage.see("it is running")
        await stage.see("saved first")
        await stage.press("escape")
        assert stage.on_board

    stage.play(story)
    assert path.exists()
    assert stage.world.json("ls")[0]["process"]["alive"] is True


def test_d_and_enter_save_and_remove(stage: Stage) -> None:
    made = stage.world.new("-n", "a", *READER)
    work(made)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("d")
        await stage.see("precious.txt")
        await stage.press("enter")
        await stage.until(lambda: stage.names == [])
        await stage.until(lambda: "removed a" in stage.said)
        assert "uncommitted work is saved" in stage.said

    stage.play(story)
    [entry] = stage.world.json("history")
    assert (entry["name"], entry["reason"]) == ("a", "user")
    assert entry["salvage_ref"]
    assert stage.world.linked_worktrees() == []


def test_there_is_no_yes_before_the_facts_are_there(stage: Stage) -> None:
    stage.record("a")

    async def story(_: Pilot[None]) -> None:
        ask = Confirmation("Remove a?", None, yes="remove")
        answers: list[bool | None] = []
        stage.app.push_screen(ask, answers.append)
        await stage.see("looking at what is at stake")
        await stage.press("enter", "y")
        assert answers == []
        ask.learn([])
        await stage.press("y")
        assert answers == [True]

    stage.play(story)


def test_many_marked_are_removed_after_one_dialog_with_a_line_each(stage: Stage) -> None:
    work(stage.world.new("-n", "a", *READER))
    stage.world.new("-n", "b", "--", "sleep", "1000")
    stage.world.new("-n", "c", "--", "sleep", "1000")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.names == ["a", "b", "c"])
        await stage.press("space", "space", "d")
        await stage.see("Remove 2 agents?")
        await stage.see("precious.txt")
        await stage.see("b: running, no work at stake")
        await stage.press("y")
        await stage.until(lambda: stage.names == ["c"])

    stage.play(story)
    assert {entry["name"] for entry in stage.world.json("history")} == {"a", "b"}


def test_x_stops_after_asking_and_capital_r_starts_again(stage: Stage) -> None:
    stage.world.new("-n", "a", *READER)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("x")
        await stage.see("Stop a?")
        await stage.press("escape")
        assert "working" in stage.list
        await stage.press("x", "y")
        await stage.until(lambda: "stopped" in stage.list)
        await stage.until(lambda: "stopped a" in stage.said)
        await stage.press("R")
        await stage.until(lambda: "working" in stage.list)
        await stage.press("R")
        await stage.see("Restart a?")
        await stage.press("escape")

    stage.play(story)
    assert stage.world.json("show", "a")["restarts"] == 1


def test_capital_r_on_a_lost_one_brings_all_lost_ones_back(stage: Stage) -> None:
    for name in "ab":
        made = stage.world.new("-n", name, "--", "sleep", "1000")
        stage.world.run("stop", name)
        _lose(stage.world, made["id"])

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.headline.count("2 lost"))
        await stage.press("R")
        await stage.until(lambda: "2 working" in stage.headline)

    stage.play(story)


def _lose(world: World, agent_id: str) -> None:
    opened = open_store(str(world.state))
    agent = opened.agent(agent_id)
    assert agent is not None
    opened.swap(agent, expect=[State.EXITED], state=State.LOST)
    opened.close()


def test_r_renames_the_agent_and_its_window(stage: Stage) -> None:
    made = stage.world.new("-n", "a", *READER)
    stage.world.new("-n", "b", *READER)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("r", *"better", "enter")
        await stage.until(lambda: "better" in stage.names)
        await stage.press("r", "b", "enter")
        await stage.until(lambda: "the name 'b' is taken" in stage.said)
        await stage.press("r", *"No Name!", "enter")
        await stage.until(lambda: "cannot be a name" in stage.said)

    stage.play(story)
    [renamed] = [a for a in stage.world.json("ls") if a["id"] == made["id"]]
    assert renamed["name"] == "better"
    assert (renamed["branch"], renamed["worktree"]) == (made["branch"], made["worktree"])
    assert "better" in stage.world.tmux("list-windows", "-a", "-F", "#{window_name}").split()


def test_m_commits_what_is_left_and_merges_after_asking(stage: Stage) -> None:
    for name in ("name", "email"):
        stage.world.git("config", f"user.{name}", "somebody")
    made = stage.world.new("-n", "a", *READER)
    work(made)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("m")
        await stage.see("precious.txt")
        await stage.see("committed to its branch first")
        await stage.press("escape")
        assert not (stage.world.repo / "precious.txt").exists()
        await stage.press("m")
        await stage.see("precious.txt")
        await stage.press("enter")
        await stage.until(lambda: "of a went into main" in stage.said)

    stage.play(story)
    assert (stage.world.repo / "precious.txt").read_text() == "work\n"


def test_the_tabs_show_diff_timeline_and_health(stage: Stage) -> None:
    work(stage.world.new("-n", "a", "Do it", *READER))

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: "I am the agent" in stage.view)
        await stage.press("tab")
        await stage.until(lambda: "+work" in stage.view)
        assert "precious.txt" in stage.view
        await stage.until(lambda: "+2 \u22120" in stage.list or "+1 \u22120" in stage.list)
        await stage.press("tab")
        await stage.until(lambda: "creating: task: Do it" in stage.view)
        assert "started: pid" in stage.view
        await stage.press("tab")
        await stage.until(lambda: "alive: pid" in stage.view)
        for word in ("window", "there: tmuxorch-repo", "worktree", "memory", "disk", "processor"):
            assert word in stage.view

    stage.play(story)


def test_capital_d_and_y_open_pages(stage: Stage) -> None:
    work(stage.world.new("-n", "a", *READER))

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("D")
        await stage.see("+work")
        assert isinstance(stage.app.screen, Page)
        await stage.press("j", "k", "space", "b", "G", "g", "l", "h", "q")
        await stage.press("y")
        await stage.see("started: pid")
        await stage.press("escape")
        assert stage.on_board

    stage.play(story)


def test_a_finished_worker_with_work_opens_a_card(stage: Stage) -> None:
    made = stage.world.new("-n", "a", "--", "sh", "-c", "echo my last words; read x; exit 3")
    work(made)

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: "my last words" in stage.view)
        stage.world.run("send", "a", "go")
        await stage.until(lambda: "✗ crashed  a" in stage.list)
        await stage.until(lambda: "a crashed: exit code 3" in stage.said)
        await stage.press("enter")
        assert isinstance(stage.app.screen, Triage)
        await stage.see("it ended with exit code 3")
        await stage.see("precious.txt")
        await stage.see("my last words")
        await stage.press("D")
        await stage.see("+work")
        await stage.press("escape", "enter", "d")
        await stage.see("Remove a?")
        await stage.press("escape", "enter", "R")
        await stage.until(lambda: "running again: a" in stage.said)

    stage.play(story)


def test_the_history_is_searched_and_shows_the_last_screen(stage: Stage) -> None:
    for name in ("alpha", "beta"):
        stage.world.new("-n", name, f"Task of {name}", "--", "sh", "-c", f"echo bye {name}; cat")
        wait_for(lambda: f"bye {name}" in stage.world.run("logs", name).stdout)  # noqa: B023
        stage.world.run("rm", name, "-y")

    async def story(_: Pilot[None]) -> None:
        await stage.press("H")
        await stage.see("Task of alpha")
        await stage.see("bye beta")
        await stage.press("j")
        await stage.see("bye alpha")
        await stage.press("slash", *"beta")
        await stage.until(lambda: "Task of alpha" not in stage.painted)
        await stage.see("bye beta")
        await stage.press("enter", "escape")
        assert stage.on_board

    stage.play(story)


def test_u_brings_back_what_was_removed_last(stage: Stage) -> None:
    path = work(stage.world.new("-n", "a", *READER))

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("d")
        await stage.see("precious.txt")
        await stage.press("enter")
        await stage.until(lambda: "removed a" in stage.said)
        assert not path.exists()
        await stage.press("u")
        await stage.until(lambda: "a is back with its work" in stage.said)
        await stage.until(lambda: stage.names == ["a"])

    stage.play(story)
    [back] = stage.world.json("ls")
    assert (Path(back["worktree"]) / "precious.txt").read_text() == "work\n"


def test_u_without_a_removal_says_so(stage: Stage) -> None:
    async def story(_: Pilot[None]) -> None:
        await stage.press("u")
        await stage.until(lambda: "no removal to undo" in stage.said)

    stage.play(story)


def test_enter_in_the_history_restores(stage: Stage) -> None:
    work(stage.world.new("-n", "a", "The old task", *READER))
    stage.world.run("rm", "a", "-y")

    async def story(_: Pilot[None]) -> None:
        await stage.press("H")
        await stage.see("The old task")
        await stage.press("enter")
        await stage.until(lambda: stage.names == ["a"])

    stage.play(story)
    [back] = stage.world.json("ls")
    assert (Path(back["worktree"]) / "precious.txt").exists()


def test_the_sweep_lists_reasons_and_clears_what_was_chosen(stage: Stage) -> None:
    stage.world.new("-n", "keep", *READER)
    orphan = stage.world.new("-n", "orphan", "--", "sleep", "1000")
    work(orphan)
    stage.world.run("stop", "orphan")
    _forget(stage.world, orphan["id"])

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.names == ["keep"])
        await stage.press("S")
        await stage.see(os.path.basename(orphan["worktree"]))
        await stage.see("why")
        await stage.press("enter")
        await stage.until(lambda: "choose some with space first" in stage.said)
        await stage.press("asterisk", "enter")
        await stage.see("Clear away")
        await stage.press("y")
        await stage.until(lambda: "cleared away" in stage.said)
        await stage.press("escape")
        assert stage.on_board

    stage.play(story)
    assert not os.path.exists(orphan["worktree"])
    assert [agent["name"] for agent in stage.world.json("ls")] == ["keep"]


def _forget(world: World, agent_id: str) -> None:
    """As if the record had been lost: worktree and branch are nobody's."""
    opened = open_store(str(world.state))
    with opened._write() as db:
        db.execute("DELETE FROM agents WHERE id = ?", [agent_id])
    opened.close()


def test_the_palette_runs_actions(stage: Stage) -> None:
    stage.record("a")
    stage.record("b")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("colon")
        await stage.pilot.pause(0.2)
        await stage.press(*"mark all")
        await stage.pilot.pause(0.5)
        await stage.press("enter")
        await stage.pilot.pause(0.2)
        if stage.marked != {"a", "b"}:
            await stage.press("enter")
        await stage.until(lambda: stage.marked == {"a", "b"})

    stage.play(story)


def test_removing_while_the_repository_is_gone_deletes_nothing(stage: Stage) -> None:
    made = stage.world.new("-n", "a", *READER)
    path = work(made)
    os.rename(stage.world.repo, stage.world.directory / "moved")

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "a")
        await stage.press("d")
        await stage.see("is not there")
        await stage.press("y")
        await stage.until(lambda: "quarantined" in stage.headline)
        await stage.until(lambda: "nothing was deleted" in stage.said)

    stage.play(story)
    assert path.exists()
