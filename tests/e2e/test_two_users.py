"""Another user of the machine, for real: what he made first is never taken for ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import World

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")

HIM = 65533
READER = ("--", "sh", "-c", "cat >out.txt")


class Neighbour:
    """Somebody else with a directory that everybody may write to, as /tmp is."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.commons = world.directory / "commons"
        self.commons.mkdir()
        self.commons.chmod(0o1777)
        world.directory.chmod(0o755)

    def does(self, script: str) -> None:
        subprocess.run(
            ["sh", "-euc", script],
            user=HIM,
            group=HIM,
            extra_groups=[],
            cwd=self.commons,
            env={"PATH": os.environ["PATH"], "HOME": str(self.commons)},
            check=True,
        )

    def listens(self, path: Path) -> None:
        """He has a server of his own on that socket."""
        self.does(f"tmux -f /dev/null -S {path} new-session -d sleep 600; chmod 777 {path}")


@pytest.fixture
def neighbour(world: World) -> Iterator[Neighbour]:
    neighbour = Neighbour(world)
    world.environ["TMUX_TMPDIR"] = str(neighbour.commons)
    yield neighbour
    for socket in neighbour.commons.rglob("*"):
        if socket.is_socket():
            subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False)


def refusal(world: World, *args: str) -> str:
    done = world.run(*args, ok=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_sockets_directory_that_he_made_first_is_refused(
    world: World, neighbour: Neighbour
) -> None:
    del world.environ["TMUXORCH_SOCKET"]
    neighbour.does("umask 0; mkdir tmux-0")
    neighbour.listens(neighbour.commons / "tmux-0/default")
    for verb in (("new", "-n", "a", *READER), ("-L", "other", "new", "-n", "a", *READER)):
        assert f"belongs to another user (uid {HIM})" in refusal(world, *verb)
    sessions = subprocess.run(
        ["tmux", "-S", str(neighbour.commons / "tmux-0/default"), "show-environment", "-g"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "TMUXORCH" not in sessions.stdout


def test_a_socket_of_his_is_not_talked_to(world: World, neighbour: Neighbour) -> None:
    socket = neighbour.commons / "his"
    neighbour.listens(socket)
    said = refusal(world, "-S", str(socket), "new", "-n", "a", *READER)
    assert f"belongs to another user (uid {HIM})" in said
    world.assert_nothing_left()


def test_a_window_that_he_lent_us_is_not_where_agents_go(
    world: World, neighbour: Neighbour
) -> None:
    del world.environ["TMUXORCH_SOCKET"]
    neighbour.listens(neighbour.commons / "his")
    world.environ["TMUX"] = f"{neighbour.commons}/his,1,0"
    assert "belongs to another user" in refusal(world, "new", "-n", "a", *READER)


def test_a_socket_in_a_directory_of_his_is_not_made(world: World, neighbour: Neighbour) -> None:
    neighbour.does("mkdir his")
    socket = neighbour.commons / "his/socket"
    said = refusal(world, "-S", str(socket), "new", "-n", "a", *READER)
    assert f"{socket.parent} belongs to another user" in said
    assert not socket.exists()


@pytest.mark.parametrize("verb", [("new", "-n", "a", *READER), ("ls",), ("history",), ("rm", "a")])
def test_a_state_directory_of_his_is_refused(
    world: World, neighbour: Neighbour, verb: tuple[str, ...]
) -> None:
    neighbour.does("umask 0; mkdir -p state/run; : >state/tmuxorch.db; : >state/initialised")
    world.environ["TMUXORCH_STATE_DIR"] = str(neighbour.commons / "state")
    assert f"belongs to another user (uid {HIM})" in refusal(world, *verb)


@pytest.mark.parametrize("name", ["run", "locks", "archive"])
def test_something_of_his_in_our_state_directory_is_refused(
    world: World, neighbour: Neighbour, name: str
) -> None:
    world.run("ls")
    world.state.mkdir(exist_ok=True)
    world.state.chmod(0o777)
    neighbour.does(f"rmdir {world.state}/{name} 2>/dev/null || :; mkdir {world.state}/{name}")
    said = refusal(world, "new", "-n", "a", *READER)
    assert f"{name} in it belongs to another user" in said
    world.state.chmod(0o700)


def test_a_place_for_worktrees_that_is_his_is_refused(world: World, neighbour: Neighbour) -> None:
    neighbour.does("umask 0; mkdir worktrees")
    world.environ["TMUXORCH_WORKTREES_DIR"] = str(neighbour.commons / "worktrees")
    assert "belongs to another user" in refusal(world, "new", "-n", "a", *READER)
    world.assert_nothing_left()
