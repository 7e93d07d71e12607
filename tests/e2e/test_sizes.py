"""How large a window is that nobody looks at, and whose size it takes then."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios

from tests.conftest import World, wait_for

SLEEP = ("--", "sleep", "1000")


def size(world: World, window: str) -> str:
    told = world.tmux(
        "list-windows", "-a", "-F", "#{window_id} #{window_width}x#{window_height}"
    ).split()
    return dict(zip(told[::2], told[1::2], strict=True))[window]


def test_the_first_and_the_second_agent_of_a_repository_get_a_wide_window(world: World) -> None:
    windows = [world.new("-n", name, *SLEEP)["tmux"]["window"] for name in ("a", "b")]
    assert [size(world, window) for window in windows] == ["200x50", "200x50"]


def test_a_window_takes_the_size_of_whoever_looks_at_it(world: World) -> None:
    window = world.new("-n", "a", *SLEEP)["tmux"]["window"]
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 101, 0, 0))
    client = subprocess.Popen(
        ["tmux", "-S", world.socket, "attach-session", "-t", window],
        env=world.environ, stdin=child, stdout=child, stderr=child, start_new_session=True,
    )  # fmt: skip
    try:
        wait_for(lambda: size(world, window).startswith("101x"), what="the size of its client")
    finally:
        client.kill()
        client.wait()
        os.close(parent)
        os.close(child)
