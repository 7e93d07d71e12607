"""The very first commands on a machine: no tmux since boot, any umask, whatever environment."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.conftest import World, wait_for
from tmuxorch.adapters.store.watchfile import observe_watcher

READER = ("--", "sh", "-c", "cat >out.txt")


@pytest.fixture
def untouched(world: World) -> World:
    """A machine where no tmux has run: its directory for sockets is empty."""
    tmpdir = world.directory / "empty"
    tmpdir.mkdir()
    world.environ["TMUX_TMPDIR"] = str(tmpdir)
    use_server(world, "default")
    return world


def use_server(world: World, name: str) -> None:
    del world.environ["TMUXORCH_SOCKET"]
    world.socket = f"{world.environ['TMUX_TMPDIR']}/tmux-{os.getuid()}/{name}"
    if name != "default":
        world.environ["TMUXORCH_SOCKET"] = name


def forget_tmux(world: World) -> None:
    """As after a boot: no server, no socket, no directory."""
    server = psutil.Process(int(world.tmux("display-message", "-p", "#{pid}")))
    world.tmux("kill-server")
    server.wait(20)
    directory = Path(world.socket).parent
    for left in directory.iterdir():
        left.unlink()
    directory.rmdir()


def permissions(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.mark.parametrize("option", [(), ("-L", "mine")], ids=["default", "named"])
def test_the_first_new_makes_the_sockets_directory_as_tmux_does(
    untouched: World, option: tuple[str, ...]
) -> None:
    untouched.socket = f"{Path(untouched.socket).parent}/{option[1] if option else 'default'}"
    made = untouched.new(*option, "-n", "first", *READER)
    assert made["tmux"]["socket"] == untouched.socket
    assert permissions(Path(untouched.socket).parent) == 0o700
    assert untouched.marked_panes() == [made["id"]]


def test_every_other_way_to_start_a_server_makes_it_too(untouched: World) -> None:
    untouched.new("-n", "again", *READER)
    forget_tmux(untouched)
    untouched.run("restart", "again")
    assert len(untouched.marked_panes()) == 1

    untouched.run("rm", "-y", "again")
    forget_tmux(untouched)
    untouched.run("restore", "again", "--start")
    assert len(untouched.marked_panes()) == 1

    untouched.run("stop", "again")
    forget_tmux(untouched)
    del untouched.environ["TMUXORCH_WATCHER"]
    untouched.run("restart", "again")
    wait_for(lambda: observe_watcher(str(untouched.state)).alive, what="a watcher")


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777], ids=oct)
def test_a_sockets_directory_that_is_open_to_others_is_refused(untouched: World, mode: int) -> None:
    directory = Path(untouched.socket).parent
    directory.mkdir()
    directory.chmod(mode)
    refused = untouched.run("new", "-n", "a", *READER, ok=False)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"tmuxorch: the tmux socket {untouched.socket} is not safe to use: {directory} is open "
        f"to other users; run: chmod 700 {directory}; nothing was sent to it\n"
    )
    assert list(directory.iterdir()) == []
    assert untouched.json("ls") == []


def test_a_sockets_directory_that_is_a_link_is_refused(untouched: World) -> None:
    elsewhere = untouched.directory / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    Path(untouched.socket).parent.symlink_to(elsewhere)
    refused = untouched.run("new", "-n", "a", *READER, ok=False)
    assert (refused.returncode, "is not a directory" in refused.stderr) == (1, True)
    assert list(elsewhere.iterdir()) == []


def test_a_socket_path_whose_directory_is_missing_is_refused_in_one_sentence(world: World) -> None:
    path = str(world.directory / "missing/socket")
    refused = world.run("-S", path, "new", "-n", "a", *READER, ok=False)
    assert refused.returncode == 1
    assert "No such file or directory" in refused.stderr
    assert refused.stderr.count("\n") == 1
    world.assert_nothing_left()


def test_a_socket_path_where_anybody_may_write_is_refused(world: World) -> None:
    shared = world.directory / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    refused = world.run("-S", str(shared / "s"), "new", "-n", "a", *READER, ok=False)
    assert refused.returncode == 1
    assert f"other users may write in {shared}" in refused.stderr
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize("umask", ["000", "022", "077"])
def test_no_umask_opens_our_directories_to_others(untouched: World, umask: str) -> None:
    for name in ("TMUXORCH_STATE_DIR", "TMUXORCH_WORKTREES_DIR"):
        del untouched.environ[name]
    untouched.state = untouched.home / ".local/state/tmuxorch"
    untouched.worktrees = untouched.home / ".local/share/tmuxorch/worktrees"
    words = shlex.join(["tmuxorch", "new", "-n", "a", *READER])
    subprocess.run(
        ["sh", "-c", f"umask {umask}; exec {words}"],
        cwd=untouched.repo,
        env=untouched.environ,
        check=True,
        capture_output=True,
    )
    (worktree,) = untouched.linked_worktrees()
    ours = [untouched.state, untouched.worktrees.parent, untouched.worktrees]
    ours += [path for path in untouched.state.iterdir() if path.is_dir()]
    ours += [Path(worktree).parent, Path(untouched.socket).parent]
    assert {str(path): permissions(path) for path in ours} == {str(path): 0o700 for path in ours}
    untouched.run("rm", "-y", "a")
    untouched.assert_nothing_left()
