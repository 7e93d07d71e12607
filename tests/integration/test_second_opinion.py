"""A library without timeouts is waited for just so long."""

from __future__ import annotations

import os
import signal

from tests.conftest import World
from tests.e2e.test_watch_death import SLEEP
from tmuxorch.adapters.tmux.second_opinion import ask_libtmux
from tmuxorch.core.observation import Unknown


def test_libtmux_in_front_of_a_stopped_tmux_is_given_up(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    server = int(world.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        answer = ask_libtmux(world.socket, timeout_s=1.0)
    finally:
        os.kill(server, signal.SIGCONT)
    assert answer == Unknown("it did not answer within 1 s")


def test_a_server_that_is_not_there_has_no_panes(world: World) -> None:
    assert ask_libtmux(world.socket) == {}
