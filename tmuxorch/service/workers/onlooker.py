"""Looks at an agent's screen while something is typed into it, and the keys pressed there."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.locks import flock
from tmuxorch.adapters.system.run import Timeout
from tmuxorch.core.inputbox import without_escapes
from tmuxorch.core.observation import Alive
from tmuxorch.errors import NotReady, NotRunning
from tmuxorch.service.health.explaining import judge_now
from tmuxorch.service.workers.visibility import find_pane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tmuxorch.config.profiles import Profile
    from tmuxorch.core.evidence import Judgement
    from tmuxorch.model import Agent, PaneId
    from tmuxorch.service.context import Context

STEP_S = 0.03
# Others' messages go first, each as long as it takes; nobody waits for ever.
TURN_S = 120.0


@contextmanager
def in_turn(ctx: Context, agent: Agent) -> Iterator[None]:
    """Be the only one who types into the agent's window."""
    lock = os.path.join(ctx.run_dir(agent.task.id), "sending")
    try:
        with flock(lock, timeout_s=TURN_S):
            yield
    except FileNotFoundError:
        raise NotRunning(f"{agent.task.name} has been removed; nothing was sent") from None
    except Timeout:
        raise NotReady(
            f"other messages are still on their way to {agent.task.name}; nothing was sent"
        ) from None


class Onlooker:
    """One agent's screen: `lines` are those of the last look, with their escapes."""

    def __init__(self, ctx: Context, agent: Agent, profile: Profile | None) -> None:
        self.ctx = ctx
        self.agent = agent
        self.name = agent.task.name
        self.profile = profile
        self.tmux = ctx.tmux(agent.run.socket)
        self.pane: PaneId
        self.lines: Sequence[str] = ()

    @property
    def plain(self) -> Sequence[str]:
        return [without_escapes(line) for line in self.lines]

    def look(self) -> Judgement:
        """What the agent does now; `NotRunning` if its process has ended."""
        if self.agent.run.process is None or not isinstance(
            procfs.observe_process(self.agent.run.process), Alive
        ):
            raise NotRunning(
                f"{self.name} has ended, so nothing was sent; start it again with "
                f"`tmuxorch restart {self.name}`"
            )
        pane = find_pane(self.ctx, self.agent)
        self.pane = pane.place.pane
        self.lines = self.tmux.capture(self.pane, escapes=True).splitlines()
        agent = self.ctx.store.agent(self.agent.task.id) or self.agent
        return judge_now(self.ctx, self.profile, agent, pane, self.plain)

    def press(self, key: str, *, while_shown: str = "") -> None:
        """Press a key; only while these plain words stand on the screen, if any are given."""
        self.tmux.press(self.pane, key, while_shown=while_shown)


def poll(seconds: float, ask: Callable[[], bool]) -> bool:
    """Ask until it is so, or the time is up."""
    deadline = time.monotonic() + seconds
    while not ask():
        if time.monotonic() > deadline:
            return False
        time.sleep(STEP_S)
    return True
