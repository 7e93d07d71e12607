"""Workers in the tmux of a person with opinions, who also moves the furniture."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import World, wait_for

READER = ("--", "sh", "-c", "cat >out.txt")
HOSTILE = """\
set -g base-index 1
setw -g pane-base-index 1
set -g renumber-windows on
setw -g automatic-rename on
setw -g allow-rename on
setw -g remain-on-exit on
set -g default-command "exec false"
set -g default-shell /bin/false
set -g destroy-unattached on
set -g detach-on-destroy off
set -s exit-unattached on
set -g status off
set -g prefix None
set -g mouse on
set -g word-separators ""
set -g update-environment ""
setw -g monitor-activity on
"""


def received(worker: dict[str, Any]) -> str:
    path = Path(worker["worktree"]) / "out.txt"
    return path.read_text() if path.exists() else ""


def pane_facts(world: World, pane: str, form: str) -> str:
    lines = world.tmux("list-panes", "-a", "-F", "#{pane_id} " + form).splitlines()
    return next((line.partition(" ")[2] for line in lines if line.split(" ")[0] == pane), "")


def panes(world: World) -> list[str]:
    return world.tmux("list-panes", "-a", "-F", "#{pane_id}").split()


def test_a_worker_lives_and_goes_under_a_hostile_configuration(world: World) -> None:
    (world.home / ".tmux.conf").write_text(HOSTILE)
    for name in ("a", "b", "c"):
        made = world.new("-n", name, *READER)
        world.run("send", name, f"hello {name}")
        wait_for(partial(received, made))
        assert received(made) == f"hello {name}\n"
        facts = pane_facts(world, made["tmux"]["pane"], "#{window_name} #{pane_dead}")
        assert facts == f"{name} 0"
    assert world.tmux("show-options", "-gv", "base-index") == "1\n", "the person's file was read"
    assert all(a["process"]["alive"] for a in world.json("ls"))
    world.run("stop", "b")
    assert world.json("restart", "b")["process"]["alive"] is True
    world.run("rm", "-y", "a", "b", "c")
    world.assert_nothing_left()


def test_the_persons_own_options_are_left_as_they_are(world: World) -> None:
    (world.home / ".tmux.conf").write_text("setw -g remain-on-exit on\nset -g base-index 1\n")
    world.tmux("new-session", "-d", "-s", "mine", "sleep", "1000")
    before = world.tmux("show-options", "-g"), world.tmux("show-options", "-gw")
    world.new("-n", "a", *READER)
    assert (world.tmux("show-options", "-g"), world.tmux("show-options", "-gw")) == before
    assert "mine" in world.tmux("list-sessions", "-F", "#{session_name}").split()
    world.run("rm", "-y", "a")
    assert "mine" in world.tmux("list-sessions", "-F", "#{session_name}").split()


@pytest.mark.parametrize("server", ["same", "other"])
def test_it_works_from_inside_a_tmux_window(world: World, server: str) -> None:
    socket = world.socket if server == "same" else str(world.directory / "outer")
    chosen = "" if server == "same" else f"export TMUXORCH_SOCKET={world.socket};"
    script = (
        f"unset TMUXORCH_SOCKET; {chosen}"
        "tmuxorch new --json -n inside -- sh -c 'cat >out.txt' >made.json 2>said; "
        "echo $? >status; exec sleep 1000"
    )
    argv = ["tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-s", "mine"]
    subprocess.run([*argv, "sh", "-c", script], cwd=world.repo, env=world.environ, check=True)
    try:
        status = world.repo / "status"
        wait_for(lambda: status.exists() and status.read_text())
        assert status.read_text() == "0\n", (world.repo / "said").read_text()
        [made] = world.json("ls")
        assert made["tmux"]["socket"] == world.socket
        assert world.marked_panes() == [made["id"]]
        assert made["tmux"]["session"] != "mine"
        world.run("send", "inside", "hello")
        wait_for(lambda: received(made))
        world.run("rm", "-y", "inside")
        world.assert_nothing_left()
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], env=world.environ, check=True)


def test_a_pane_the_person_split_off_outlives_the_worker(world: World) -> None:
    made = world.new("-n", "a", *READER)
    mine = world.tmux(
        "split-window", "-P", "-F", "#{pane_id}", "-t", made["tmux"]["pane"], "sleep", "1000"
    ).strip()
    world.run("send", "a", "to the agent, not the neighbour")
    wait_for(lambda: received(made))
    assert world.json("show", "a")["process"]["alive"] is True
    world.run("rm", "-y", "a")
    assert mine in panes(world)
    assert made["tmux"]["pane"] not in panes(world)
    world.assert_nothing_left()


def test_a_renamed_window_and_session_are_still_the_workers(world: World) -> None:
    script = r"printf '\033kstolen\033\\'; cat >out.txt"
    made = world.new("-n", "a", "--", "sh", "-c", script)
    world.tmux("rename-window", "-t", made["tmux"]["window"], "by hand")
    world.tmux("rename-session", "-t", made["tmux"]["session"], "elsewhere")
    world.run("send", "a", "hello")
    wait_for(lambda: received(made))
    world.new("-n", "b", *READER)
    world.run("rm", "-y", "a", "b")
    world.assert_nothing_left()


def test_a_program_cannot_rename_its_window(world: World) -> None:
    script = r"printf '\033kstolen\033\\'; echo ready; exec sleep 1000"
    made = world.new("-n", "a", "--", "sh", "-c", script)
    pane = made["tmux"]["pane"]
    wait_for(lambda: "ready" in world.screen(pane))
    assert pane_facts(world, pane, "#{window_name}") == "a"


@pytest.mark.parametrize("how", ["join-pane", "break-pane", "move-window", "swap-window"])
def test_a_worker_the_person_moved_is_still_found(world: World, how: str) -> None:
    made = world.new("-n", "a", *READER)
    pane, window = made["tmux"]["pane"], made["tmux"]["window"]
    world.tmux("new-session", "-d", "-s", "mine", "-x", "200", "-y", "50", "sleep", "1000")
    mine = world.tmux("list-panes", "-t", "=mine:", "-F", "#{pane_id}").strip()
    match how:
        case "join-pane":
            world.tmux("join-pane", "-d", "-s", pane, "-t", mine)
        case "break-pane":
            world.tmux("split-window", "-d", "-t", pane, "sleep", "1000")
            world.tmux("break-pane", "-d", "-s", pane, "-t", "mine:7")
        case "move-window":
            world.tmux("move-window", "-d", "-s", window, "-t", "mine:9")
        case _:
            world.tmux("swap-window", "-d", "-s", window, "-t", mine)
    world.run("send", "a", "found")
    wait_for(lambda: received(made))
    assert received(made) == "found\n"
    assert "found" in world.run("logs", "a").stdout
    world.run("rm", "-y", "a")
    assert mine in panes(world)
    world.assert_nothing_left()


def test_a_window_linked_into_another_session_goes_from_both(world: World) -> None:
    made = world.new("-n", "a", *READER)
    world.tmux("new-session", "-d", "-s", "mine", "sleep", "1000")
    world.tmux("link-window", "-d", "-s", made["tmux"]["window"], "-t", "mine:5")
    world.run("send", "a", "once")
    wait_for(lambda: received(made))
    world.run("rm", "-y", "a")
    assert received(made) == ""
    world.assert_nothing_left()
    assert "mine" in world.tmux("list-sessions", "-F", "#{session_name}").split()


def test_a_repository_path_that_tmux_would_expand_is_only_a_path(world: World) -> None:
    repo = world.make_repo("it's #(touch pwned) $(touch pwned) ; 100% ü")
    made = world.new("-n", "a", *READER, cwd=repo)
    world.run("send", "a", "hello", cwd=repo)
    wait_for(lambda: received(made))
    world.run("rm", "-y", "a", cwd=repo)
    assert world.branches(repo) == ["main"]
    assert world.marked_panes() == []
    assert list(world.directory.rglob("pwned")) == []
