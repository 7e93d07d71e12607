"""The control channel: it starts no tmux server, and dies with whoever opened it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.conftest import World, wait_for
from tmuxorch.adapters.system import tether
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
