"""`attach` in a real terminal: the window of a second, private tmux server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World, wait_for

READER = ("--", "sh", "-c", "echo I am the agent; cat >out.txt")


class Terminal:
    """A shell in a terminal that can be typed into and read."""

    def __init__(self, world: World, socket: str, session: str) -> None:
        self.world = world
        self.socket = socket
        self.session = session

    def tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, "-f", "/dev/null", *args],
            env=self.world.environ,
            cwd=self.world.repo,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def open_shell(self) -> None:
        self.tmux("new-session", "-d", "-s", self.session, "-x", "120", "-y", "30", "sh")
        if self.tmux("list-windows", "-t", self.session, "-F", "#{window_width}") != "120\n":
            # tmux 3.2 takes no notice of the size.
            self.tmux("resize-window", "-t", self.session, "-x", "120", "-y", "30")
            self.tmux("set-option", "-w", "-u", "-t", self.session, "window-size")
        self.type("echo rea''dy")
        self.wait_screen("ready")

    def type(self, text: str, *keys: str) -> None:
        if text:
            self.tmux("send-keys", "-t", self.session, "-l", text)
        for key in keys or ("Enter",):
            self.tmux("send-keys", "-t", self.session, key)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", self.session)

    def wait_screen(self, text: str) -> None:
        try:
            wait_for(lambda: text in self.screen(), what=f"{text!r} on the screen")
        except AssertionError as e:
            raise AssertionError(f"{e}:\n{self.screen()}") from None


@pytest.fixture
def terminal(world: World) -> Iterator[Terminal]:
    terminal = Terminal(world, str(world.directory / "outer"), "outer")
    terminal.open_shell()
    yield terminal
    with suppress(subprocess.CalledProcessError):
        terminal.tmux("kill-server")


def received(worker: dict[str, Any]) -> str:
    path = Path(worker["worktree"]) / "out.txt"
    return path.read_text() if path.exists() else ""


def clients(world: World, form: str) -> list[str]:
    return world.tmux("list-clients", "-F", form).splitlines()


def detach(world: World, terminal: Terminal) -> None:
    # What arrives within a moment of other keys is taken for a paste, in which no key is a command.
    world.tmux("set-option", "-g", "assume-paste-time", "0")
    terminal.type("", "C-b", "d")
    wait_for(lambda: not clients(world, "#{client_pid}"), what="detaching")


def test_attach_from_another_server_nests_and_detach_returns(
    world: World, terminal: Terminal
) -> None:
    made = world.new("-n", "a", *READER)
    world.new("-n", "b", *READER)
    # The outer server's prefix must be no key, so that it reaches the inner one.
    terminal.tmux("set-option", "-g", "prefix", "None")
    terminal.type("tmuxorch attach a; echo status=$?")
    terminal.wait_screen("I am the agent")
    assert clients(world, "#{window_name} #{client_readonly}") == ["a 0"]
    assert "nested" not in terminal.screen()
    terminal.type("typed by hand")
    wait_for(lambda: received(made))
    assert received(made) == "typed by hand\n"
    detach(world, terminal)
    terminal.wait_screen("status=0")
    assert world.json("show", "a")["process"]["alive"] is True


def test_read_only_looks_without_typing(world: World, terminal: Terminal) -> None:
    made = world.new("-n", "a", *READER)
    terminal.tmux("set-option", "-g", "prefix", "None")
    terminal.type("tmuxorch attach --read-only a; echo status=$?")
    terminal.wait_screen("I am the agent")
    assert clients(world, "#{window_name} #{client_readonly}") == ["a 1"]
    terminal.type("must not arrive")
    detach(world, terminal)
    terminal.wait_screen("status=0")
    world.run("send", "a", "end")
    wait_for(lambda: received(made))
    assert received(made) == "end\n"


def test_new_can_attach_at_once(world: World, terminal: Terminal) -> None:
    terminal.type("tmuxorch new --attach -n a -- sh -c 'echo I am the agent; cat'")
    wait_for(lambda: world.json("ls"))
    wait_for(lambda: world.marked_panes() and clients(world, "#{window_name}") == ["a"])
    terminal.wait_screen("I am the agent")


@pytest.mark.parametrize("read_only", [False, True])
def test_inside_the_same_server_the_client_switches(
    world: World, terminal: Terminal, read_only: bool
) -> None:
    made = world.new("-n", "a", *READER)
    world.new("-n", "b", *READER)
    Terminal(world, world.socket, "mine").open_shell()
    terminal.type(f"env -u TMUX tmux -S {world.socket} attach -t mine")
    wait_for(lambda: clients(world, "#{session_name}") == ["mine"])
    terminal.type(f"tmuxorch attach {'--read-only ' if read_only else ''}a")
    wait_for(lambda: clients(world, "#{window_name}") == ["a"], what="the switch")
    assert clients(world, "#{session_name}") == [made["tmux"]["session"]]
    assert clients(world, "#{client_readonly}") == [str(int(read_only))]
    terminal.wait_screen("I am the agent")


def test_without_a_terminal_attach_says_what_to_use(world: World) -> None:
    world.new("-n", "a", *READER)
    done = world.run("attach", "a", ok=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "terminal" in done.stderr
    assert "tmuxorch logs a" in done.stderr


def test_attach_to_a_stopped_worker_says_how_to_bring_it_back(world: World) -> None:
    world.new("-n", "a", *READER)
    world.run("stop", "a")
    done = world.run("attach", "a", ok=False)
    assert done.returncode == 1
    assert "tmuxorch restart a" in done.stderr


@pytest.mark.parametrize(("answer", "left"), [("n", 1), ("y", 0)])
def test_a_person_is_asked_before_work_is_removed(
    world: World, terminal: Terminal, answer: str, left: int
) -> None:
    made = world.new("-n", "a", *READER)
    (Path(made["worktree"]) / "work.txt").write_text("work\n")
    terminal.type("tmuxorch rm a; echo status=$?")
    terminal.wait_screen("Save this and remove a?")
    assert "work.txt" in terminal.screen()
    terminal.type(answer)
    terminal.wait_screen("status=0")
    assert len(world.json("ls")) == left


def test_ctrl_c_at_the_question_is_status_130_and_touches_nothing(
    world: World, terminal: Terminal
) -> None:
    made = world.new("-n", "a", *READER)
    (Path(made["worktree"]) / "work.txt").write_text("work\n")
    terminal.type("tmuxorch rm a; echo status=$?")
    terminal.wait_screen("Save this and remove a?")
    terminal.type("", "C-c")
    terminal.wait_screen("status=130")
    assert world.json("ls")[0]["process"]["alive"] is True
