"""The control channel looks; it never starts a tmux server."""

from __future__ import annotations

import os

import pytest

from tests.conftest import World
from tmuxorch.adapters.control import Control
from tmuxorch.errors import TmuxNoServer


def test_a_channel_to_no_server_starts_none(world: World) -> None:
    control = Control(world.socket, timeout_s=5.0)
    with pytest.raises(TmuxNoServer):
        control.run("list-sessions")
    control.close()
    assert not os.path.exists(world.socket)
