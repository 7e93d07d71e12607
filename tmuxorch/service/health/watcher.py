"""The watcher's day: look, sleep until something happens or a second has gone, look again."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tmuxorch.adapters.system.wake import Wake
from tmuxorch.core.observation import Dead
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import EventKind, State
from tmuxorch.service.health.liveness import look
from tmuxorch.service.health.loop import PASS_S, Deed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tmuxorch.adapters.store.watchfile import Leadership
    from tmuxorch.model import AgentId
    from tmuxorch.service.context import Context
    from tmuxorch.service.health.loop import Health

ONCE_S = 60.0
SETTLE_S = 10.0
STEP_S = 0.02
SWEEP_S = 3600.0
PAUSE_S = (0.1, 30.0)  # the first pause after a pass that failed as a whole, and the longest


def watch(
    health: Health,
    leadership: Leadership,
    *,
    events: bool,
    on_bug: Callable[[BaseException], None],
) -> None:
    """Watch until the process is ended. Without `events` only the passing of time wakes it."""
    wake = Wake()
    trouble = Trouble(health)
    only: Collection[AgentId] | None = None
    whole_at = sweep_at = 0.0
    failures = 0
    while True:
        if time.monotonic() >= whole_at:
            only = None
        try:
            if time.monotonic() >= sweep_at:
                sweep_at = time.monotonic() + SWEEP_S
                health.sweep()
            health.look(only)
        except (TmuxorchError, OSError) as e:
            trouble.begin(str(e))
            only, health.soon_s = None, PASS_S
        except Exception as e:  # noqa: BLE001 -- the border: one bad pass must not end the watch
            on_bug(e)
            failures += 1
            time.sleep(min(PAUSE_S[1], PAUSE_S[0] * 2.0 ** min(failures - 1, 20)))
            only = None
            continue
        else:
            trouble.end()
            failures = 0
        if only is None:
            with suppress(OSError):  # a full disk; that one is alive is seen all the same
                leadership.note_pass()
            whole_at = time.monotonic() + PASS_S
        if not events:
            time.sleep(min(health.soon_s, max(0.0, whole_at - time.monotonic())))
            only = None
            continue
        wake.follow(health.alive)
        only = _sleep(health, leadership, wake, whole_at)


class Trouble:
    """What keeps passes from being made (a full disk): told when it begins, and when it is over.

    Nothing is lost meanwhile: what a pass could not record is seen again by the next.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        self._words = ""

    def begin(self, words: str) -> None:
        if words != self._words:
            self._words = words
            self._health.tell(Deed("", "tmuxorch", "cannot go on, and tries again", words))

    def end(self) -> None:
        if self._words:
            what, why = EventKind.GOES_ON, f"what was in the way is over: {self._words}"
            with suppress(TmuxorchError):
                self._health.ctx.store.note(what, why)
                self._words = ""
                self._health.tell(Deed("", "tmuxorch", what, why))


def _sleep(
    health: Health, leadership: Leadership, wake: Wake, whole_at: float
) -> Collection[AgentId] | None:
    """Wait for the next reason to look; at whom, or None for everybody."""
    channels = {channel.fileno(): channel for channel in health.servers.channels()}
    wake.listen([leadership.poked, *channels])
    ended, readable = wake.wait(min(health.soon_s, whole_at - time.monotonic()))
    closing = False
    for fd in readable & channels.keys():
        closing = channels[fd].drain() or closing
        if channels[fd].is_gone:
            health.servers.drop(channels[fd].socket)
    if leadership.poked in readable:
        os.read(leadership.poked, 65536)
        return None
    who = {health.alive.get(process) for process in ended}
    if closing or None in who:
        return None
    return {agent_id for agent_id in who if agent_id is not None} | health.again


def look_once(ctx: Context, health: Health) -> None:
    """One full pass: looks until nothing more is to be done, and waits for what was begun.

    Also for what the leader is just removing, so that the list is settled afterwards.
    """
    deadline = time.monotonic() + ONCE_S
    while time.monotonic() < deadline:
        done = health.look()
        half_done = [a for a in ctx.store.agents() if a.state is State.REMOVING]
        if not (done or health.is_busy() or health.unsure or half_done):
            return
        time.sleep(min(health.soon_s, STEP_S))


def settle(ctx: Context, health: Health) -> None:
    """A full pass, and then until every death that can be seen is recorded for what it was.

    A tmux server that is being killed lets its agents die a moment before it ends itself.
    """
    deadline = time.monotonic() + SETTLE_S
    look_once(ctx, health)
    while _has_unrecorded_death(ctx) and time.monotonic() < deadline:
        time.sleep(STEP_S)
        health.look()


def _has_unrecorded_death(ctx: Context) -> bool:
    return any(isinstance(look(ctx.state_dir, a).process, Dead) for a in ctx.store.agents())
