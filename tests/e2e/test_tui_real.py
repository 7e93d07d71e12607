"""The screen as a person has it: in a real terminal, typed into and read."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import World, wait_for
from tests.e2e.test_attach import Terminal

READER = ("--", "sh", "-c", "echo I am the agent; cat >out.txt")


class Screen(Terminal):
    """A terminal in which tmuxorch is open."""

    def open(self, command: str = "tmuxorch") -> None:
        # The outer prefix must be no key, so that it reaches an inner tmux.
        self.tmux("set-option", "-g", "prefix", "None")
        self.type(f"{command}; echo status=$?")
        self.wait_screen("? help")

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.session, *keys)

    def write(self, text: str) -> None:
        self.tmux("send-keys", "-t", self.session, "-l", text)

    def wait_gone(self, text: str) -> None:
        wait_for(lambda: text not in self.screen(), what=f"{text!r} going from the screen")

    def quit(self) -> None:
        self.press("q")
        self.wait_screen("status=0")


@pytest.fixture
def screen(world: World) -> Iterator[Screen]:
    screen = Screen(world, str(world.directory / "outer"), "outer")
    screen.open_shell()
    yield screen
    with suppress(subprocess.CalledProcessError):
        screen.tmux("kill-server")


def work(worker: dict[str, Any]) -> Path:
    path = Path(worker["worktree"]) / "precious.txt"
    path.write_text("work\n")
    return path


def people(world: World, form: str) -> list[str]:
    """The clients of the agents' server without the screen's own channel."""
    lines = world.tmux("list-clients", "-F", f"#{{client_control_mode}} {form}").splitlines()
    return [line[2:] for line in lines if line.startswith("0 ")]


def test_a_worker_from_the_keyboard_and_its_live_screen(world: World, screen: Screen) -> None:
    screen.open()
    screen.wait_screen("No agents yet.")
    screen.press("n")
    screen.wait_screen("New worker in repo")
    screen.wait_screen("from the task")
    screen.wait_screen("claude")  # what can be chosen is there, so the fields take keys
    screen.write("Say hello")
    screen.press("Tab")
    screen.write("demo")
    screen.press("Enter")
    screen.wait_screen("say-hello")
    screen.wait_screen("Task: Say hello")
    screen.wait_screen("Done.")
    world.run("send", "say-hello", "a live word")
    screen.wait_screen("You said: a live word")
    screen.quit()
    assert world.json("ls")[0]["process"]["alive"] is True


def test_a_killed_agent_is_seen(world: World, screen: Screen) -> None:
    made = world.new("-n", "victim", *READER)
    screen.open()
    screen.wait_screen("working  victim")
    os.kill(made["process"]["pid"], signal.SIGKILL)
    screen.wait_screen("crashed  victim")
    screen.wait_screen("SIGKILL")


def test_attach_takes_the_terminal_and_detach_comes_back(world: World, screen: Screen) -> None:
    world.new("-n", "a", *READER)
    world.new("-n", "b", "--", "sh", "-c", "echo I am b; stty size; cat")
    screen.open()
    screen.wait_screen("working  b")
    screen.press("j")
    screen.wait_screen("I am b")
    screen.press("Enter")
    screen.wait_gone("? help")
    wait_for(lambda: people(world, "#{window_name} #{client_width}") == ["b 120"], what="its size")
    assert "nested" not in screen.screen()
    screen.press("C-b", "d")
    screen.wait_screen("? help")
    screen.wait_screen("back from b")
    screen.press("x")
    screen.wait_screen("Stop b?")  # the selection is where it was
    screen.press("Escape")
    screen.wait_gone("Stop b?")
    screen.quit()


def test_inside_the_same_server_attach_switches_and_says_the_way_back(
    world: World, screen: Screen
) -> None:
    world.new("-n", "a", *READER)
    mine = Screen(world, world.socket, "mine")
    mine.open_shell()
    screen.type(f"env -u TMUX tmux -S {world.socket} attach -t mine")
    wait_for(lambda: people(world, "#{session_name}") == ["mine"])
    screen.type("tmuxorch")
    screen.wait_screen("working  a")
    screen.press("Enter")
    wait_for(lambda: people(world, "#{window_name}") == ["a"], what="the switch")
    screen.wait_screen("prefix L goes back to tmuxorch")
    screen.press("C-b", "L")
    screen.wait_screen("? help")


def test_work_at_stake_is_named_saved_and_brought_back(world: World, screen: Screen) -> None:
    path = work(world.new("-n", "a", *READER))
    screen.open()
    screen.wait_screen("working  a")
    screen.press("d")
    screen.wait_screen("precious.txt")
    screen.press("Enter")
    screen.wait_screen("removed a")
    screen.wait_screen("No agents yet.")
    assert not path.exists()
    assert world.json("history")[0]["salvage_ref"]
    screen.press("u")
    screen.wait_screen("a is back")
    [back] = world.json("ls")
    assert (Path(back["worktree"]) / "precious.txt").read_text() == "work\n"
    screen.quit()


def test_it_follows_the_size_of_the_terminal(world: World, screen: Screen) -> None:
    world.new("-n", "a", *READER)
    screen.open()
    screen.wait_screen("working  a")
    for width, height in ((60, 15), (200, 50), (80, 24), (30, 6), (120, 30)):
        screen.tmux("resize-window", "-t", screen.session, "-x", str(width), "-y", str(height))
        if width >= 60:
            wait_for(lambda: "? help" in screen.screen().splitlines()[-1], what="the new size")
            screen.wait_screen("working")
    screen.quit()


def test_bad_weather_leaves_the_screen_up(world: World, screen: Screen) -> None:
    world.new("-n", "a", *READER)
    screen.open()
    screen.wait_screen("I am the agent")
    pid = int(world.tmux("display-message", "-p", "#{pid}"))
    psutil.Process(pid).suspend()
    try:
        screen.wait_screen("did not answer")
        screen.press("Enter")
        screen.press("Tab")
    finally:
        psutil.Process(pid).resume()
    os.kill(pid, signal.SIGKILL)
    screen.press("g")
    screen.wait_screen("lost     a")
    screen.quit()


def test_a_store_that_cannot_be_read_is_said_until_it_can(world: World, screen: Screen) -> None:
    world.new("-n", "a", *READER)
    database = world.state / "tmuxorch.db"
    database.rename(world.state / "away")
    database.write_bytes(b"not a database at all" * 100)
    screen.open()
    screen.wait_screen("cannot be used")
    os.replace(world.state / "away", database)
    screen.wait_screen("working  a")
    screen.quit()


def test_the_demo_shows_six_agents_and_leaves_nothing(world: World, screen: Screen) -> None:
    screen.open("tmuxorch demo")
    for name in ("login-redirect", "port-tests", "write-guide", "speed-up-build", "talk-to-me"):
        screen.wait_screen(name)
    screen.wait_screen("crashed")
    screen.wait_screen("waiting")
    [directory] = {
        path
        for process in psutil.process_iter()
        for path in [_demo_of(process, world)]
        if path is not None
    }
    screen.quit()
    assert not Path(directory).exists()
    assert not [p for p in psutil.process_iter() if _demo_of(p, world)]


def _demo_of(process: psutil.Process, world: World) -> str | None:
    """The directory of the demo that this process belongs to, if it is this world's."""
    with suppress(psutil.Error):
        env = process.environ()
        state = env.get("TMUXORCH_STATE_DIR", "")
        if "/tmuxorch-demo-" in state and env.get("HOME") == str(world.home):
            return os.path.dirname(state)
    return None


def test_without_a_terminal_it_prints_help(world: World) -> None:
    done = world.run()
    assert "Commands:" in done.stdout
    done = world.run("demo", ok=False)
    assert done.returncode == 1
    assert "terminal" in done.stderr


def test_keys_are_heard_while_a_diff_is_shown_that_was_made_to_stop_them(
    world: World, screen: Screen
) -> None:
    made = world.new("-n", "evil", "--", "cat")
    world.new("-n", "good", "--", "cat")
    worktree = Path(made["worktree"])
    # The first are lines over which lexers brood for hours, the last a line of ten megabytes.
    for name in ("1.chpl", "2.cddl", "3.factor", "4.py", "5.c", "6.js"):
        (worktree / name).write_text(('"' + "\\" * 59 + "!\n") * 50)
    (worktree / "7.py").write_text("(" * 10_000_000 + "\n")
    (worktree / "8.txt").write_text("a\x1b]0;t\x07\n" * 100_000)
    screen.open()
    screen.press("Tab")
    screen.wait_screen("1.chpl")
    for _ in range(3):
        screen.press("j")
        screen.wait_screen("nothing changed yet")
        screen.press("k")
        screen.wait_screen("1.chpl")
    screen.press("D")
    screen.wait_screen("work since main")
    screen.press("G", "j", "g", "q")
    screen.wait_gone("work since main")
    screen.quit()
