"""The screen on terminals, and with shells, that are not as one would like."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.conftest import World, needs, wait_for
from tests.e2e.test_tui_real import READER, Screen, screen

__all__ = ["screen"]


def screens(world: World) -> list[psutil.Process]:
    """The processes of this world that show the screen."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            ours = process.environ().get("TMUXORCH_STATE_DIR") == str(world.state)
            if ours and words and words[-1].endswith("/tmuxorch"):
                found.append(process)
    return found


@pytest.mark.parametrize("shell", ["/no/such/shell", "", "no-such-shell"])
def test_a_missing_shell_is_replaced_and_the_screen_comes_back(
    world: World, screen: Screen, shell: str
) -> None:
    world.new("-n", "a", *READER)
    screen.open(f"SHELL={shell} tmuxorch")
    screen.wait_screen("working  a")
    screen.press("t")
    screen.wait_gone("? help")
    screen.type("echo in $(basename $PWD | cut -c1); exit")
    screen.wait_screen("? help")
    screen.quit()


def test_a_shell_that_cannot_be_run_leaves_the_screen_usable(world: World, screen: Screen) -> None:
    world.new("-n", "a", *READER)
    broken = world.directory / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    screen.open(f"SHELL={broken} tmuxorch")
    screen.wait_screen("working  a")
    screen.press("t")
    screen.wait_screen("cannot be run")
    screen.quit()


def lend_to_bash(world: World, screen: Screen) -> psutil.Process:
    """Open a shell with job control from the screen; the shell."""
    world.new("-n", "a", *READER)
    screen.open("SHELL=/bin/bash tmuxorch")
    screen.wait_screen("working  a")
    [showing] = screens(world)
    screen.press("t")
    screen.wait_gone("? help")
    [shell] = wait_for(
        lambda: [child for child in showing.children() if child.name() == "bash"], what="the shell"
    )
    # It has the terminal when its own group is in front.
    wait_for(lambda: os.getpgid(shell.pid) == shell.pid, what="job control")
    return shell


@needs("bash")
def test_a_killed_shell_gives_the_terminal_back(world: World, screen: Screen) -> None:
    shell = lend_to_bash(world, screen)
    shell.kill()
    screen.wait_screen("? help")
    screen.quit()


@needs("bash")
def test_the_screen_ends_with_its_terminal_while_a_shell_has_it(
    world: World, screen: Screen
) -> None:
    lend_to_bash(world, screen)
    screen.tmux("kill-server")
    wait_for(lambda: not screens(world), what="its end")
    assert world.json("ls")[0]["process"]["alive"] is True


def test_the_screen_ends_with_its_terminal_even_if_nobody_tells_it(
    world: World, screen: Screen
) -> None:
    world.new("-n", "a", *READER)
    screen.open("trap '' HUP; tmuxorch")
    screen.wait_screen("working  a")
    assert len(screens(world)) == 1
    screen.tmux("kill-server")
    wait_for(lambda: not screens(world), what="its end")


def test_without_home_the_screen_is_refused_in_one_sentence(screen: Screen) -> None:
    screen.type("env -u HOME -u TMUXORCH_STATE_DIR tmuxorch; echo status=$?")
    screen.wait_screen("status=1")
    said = screen.screen()
    assert "HOME is not set: set it, or set TMUXORCH_STATE_DIR" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("kind", ["dumb", "unknown", ""])
@pytest.mark.parametrize("verb", ["", "demo", "attach a"])
def test_a_terminal_that_cannot_be_drawn_on_is_refused_in_one_sentence(
    world: World, screen: Screen, kind: str, verb: str
) -> None:
    world.new("-n", "a", *READER)
    screen.type(f"TERM={kind} tmuxorch {verb}; echo status=$?")
    screen.wait_screen("status=1")
    assert "needs a terminal that it can draw on, and TERM" in screen.screen().replace("\n", "")


FAILING = """
import os
from tmuxorch.cli.main import main
from tmuxorch.tui.app import TmuxorchApp

def fail(self):
    key = os.environ["API_KEY"]
    raise ValueError("out of luck")

TmuxorchApp.{method} = fail
main([])
"""


@pytest.mark.parametrize("method", ["_start_threads", "on_mount", "compose"])
def test_a_bug_in_the_screen_is_told_as_any_other_without_secrets(
    world: World, screen: Screen, method: str
) -> None:
    script = world.directory / "failing.py"
    script.write_text(FAILING.format(method=method))
    screen.type(f"API_KEY=sec''ret python {script}; echo status=$?")
    screen.wait_screen("status=3")
    said = screen.screen().replace("\n", "")
    assert "this is a bug in tmuxorch: ValueError('out of luck'); the log is" in said
    assert "secret" not in said
    assert "Traceback" not in said
    [log] = (world.state / "logs").iterdir()
    assert "out of luck" in log.read_text()
    assert "secret" not in log.read_text()


def test_term_ends_the_screen_at_once(world: World, screen: Screen) -> None:
    screen.open()
    [showing] = screens(world)
    showing.send_signal(signal.SIGTERM)
    screen.wait_screen("status=0")
    assert not Path(f"/proc/{showing.pid}").exists()
