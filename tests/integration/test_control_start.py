"""The control channel: it starts no tmux server, and dies with whoever opened it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import World, needs_proc, wait_for
from tmuxorch.adapters.system import tether
from tmuxorch.adapters.tmux import joining
from tmuxorch.adapters.tmux.control import Control
from tmuxorch.errors import TmuxNoServer


def test_a_channel_to_no_server_starts_none(world: World) -> None:
    control = Control(world.socket, timeout_s=5.0)
    with pytest.raises(TmuxNoServer):
        control.run("list-sessions")
    control.close()
    assert not os.path.exists(world.socket)


UNTIED = "import tmuxorch.adapters.tmux.control as c; c.tethered = list"
OWNER = """
import os, sys, time
from tmuxorch.adapters.tmux.control import Control
control = Control(sys.argv[1])
control.run("list-sessions")
print(control._process.pid, flush=True)
input()
control._write(b"list-sessions\\n" * 50)
print("asked", flush=True)
time.sleep(1000)
"""


def open_elsewhere(
    world: World, *, before: str = ""
) -> tuple[subprocess.Popen[str], psutil.Process]:
    """A process that has opened a channel, and the channel's client."""
    owner = subprocess.Popen(
        [sys.executable, "-c", before + OWNER, world.socket],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    return owner, psutil.Process(int(owner.stdout.readline()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_client_dies_with_its_owner_even_if_the_server_does_not_answer(
    world: World, number: signal.Signals
) -> None:
    world.new("-n", "a", "--", "sleep", "1000")
    server = psutil.Process(int(world.tmux("display-message", "-p", "#{pid}")))
    owner, client = open_elsewhere(world)
    server.suspend()
    try:
        owner.send_signal(number)
        owner.wait(10)
        wait_for(lambda: not client.is_running(), what="the end of the client")
    finally:
        server.resume()


def test_a_server_can_end_while_a_client_waits_whose_owner_is_dead(world: World) -> None:
    """As it is where the kernel does not tie the client to its owner."""
    world.new("-n", "a", "--", "sleep", "1000")
    server = psutil.Process(int(world.tmux("display-message", "-p", "#{pid}")))
    owner, client = open_elsewhere(world, before=UNTIED)
    server.suspend()
    owner.stdin.write("\n")  # type: ignore[union-attr]
    owner.stdin.flush()  # type: ignore[union-attr]
    assert owner.stdout.readline() == "asked\n"  # type: ignore[union-attr]
    owner.kill()
    owner.wait(10)
    assert client.is_running()
    killer = subprocess.Popen(["tmux", "-S", world.socket, "kill-server"])
    server.resume()
    assert killer.wait(20) == 0
    server.wait(20)


def test_a_program_whose_starter_has_gone_already_is_not_started() -> None:
    argv = tether.tethered(["/bin/echo", "alive"])
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b"alive\n"
    gone = [word if word != str(os.getpid()) else "1" for word in argv]
    assert subprocess.run(gone, capture_output=True, check=True).stdout == b""


def come_in(world: World, count: int, *, already: int) -> list[subprocess.Popen[bytes]]:
    """Clients that each want to make a session, in the queue of a server that stands still."""

    def queued() -> int:
        lines = Path("/proc/net/unix").read_text().splitlines()
        return sum(line.endswith(f" {world.socket}") for line in lines) - 1  # it listens, too

    clients = []
    for number in range(already, already + count):
        argv = ["tmux", "-S", world.socket, "new-session", "-d", "-s", f"s{number}", "sleep", "99"]
        clients.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=world.environ))
        wait_for(lambda want=number + 1: queued() >= want, what="a client's connection")  # type: ignore[misc]
    return clients


@needs_proc
def test_sessions_that_are_made_while_a_client_comes_in_do_not_end_the_server(
    world: World,
) -> None:
    world.new("-n", "a", "--", "sleep", "1000")
    header = joining.header_of(world.tmux("display-message", "-p", "#{version}").strip())
    if header is None:
        pytest.skip("this tmux is met by its own client")
    process = psutil.Process(int(world.tmux("display-message", "-p", "#{pid}")))
    reading, writing = os.pipe()
    process.suspend()
    try:
        before = come_in(world, 5, already=0)
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(world.socket)
            command = ["attach-session", "-t", "=tmuxorch:"]
            joining.introduce(server, header, reading, os.open(os.devnull, os.O_WRONLY), command)
            after = come_in(world, 5, already=6)
            process.resume()
            assert [client.wait(20) for client in before + after] == [0] * 10
            assert "1" in world.tmux("list-clients", "-F", "#{client_control_mode}").split()
    finally:
        process.resume()
        os.close(writing)


def test_a_release_that_is_not_known_is_met_by_its_own_client() -> None:
    assert [joining.header_of(v) for v in ("3.2a", "3.5", "3.3-rc")] == [
        joining.UNTIL_3_5,
        joining.UNTIL_3_5,
        None,
    ]
    assert joining.header_of("3.6b") is joining.SINCE_3_6
    assert {joining.header_of(v) for v in ("3.7", "next-3.6", "openbsd-7.8", "4.2", "")} == {None}
