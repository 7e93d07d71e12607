"""One watcher for all: who it is, and starting it where there is none."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tmuxorch.adapters.store.watchfile import Leadership, Watcher, announce, observe_watcher, poke
from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.locks import flock
from tmuxorch.adapters.system.run import Timeout
from tmuxorch.adapters.tmux.server import HOME_SESSION
from tmuxorch.errors import StateConflict, TmuxFailed

if TYPE_CHECKING:
    from tmuxorch.service.context import Context

__all__ = ["Leadership", "Watcher", "ensure_watcher", "observe_watcher", "poke", "take_lead"]

WINDOW = "watch"
# What the watcher must have as the person has it; the tmux server may be older than both.
_CARRIED = ("HOME", "PATH", "LANG", "LC_ALL", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")


def ensure_watcher(ctx: Context) -> None:
    """Start the watcher in the home session of this tmux server, unless one lives anywhere.

    `TMUXORCH_WATCHER=off` in the environment turns that off.
    """
    if ctx.environ.get("TMUXORCH_WATCHER") == "off" or observe_watcher(ctx.state_dir).alive:
        poke(ctx.state_dir)
        return
    try:
        with flock(os.path.join(ctx.state_dir, "watch.start.lock"), timeout_s=0.0):
            if not observe_watcher(ctx.state_dir).alive:
                _start(ctx)
    except Timeout:
        return  # another command is just starting it


def take_lead(state_dir: str) -> Leadership:
    """Become the one watcher; `StateConflict` if another process is."""
    leadership = Leadership.take(state_dir)
    if leadership is None:
        leader = observe_watcher(state_dir)
        where = f" ({leader.elsewhere})" if leader.elsewhere else ""
        raise StateConflict(
            f"pid {leader.pid}{where} watches already; `tmuxorch events -f` shows what it does"
        )
    return leadership


def _start(ctx: Context) -> None:
    tmux = ctx.tmux()
    tmux.start_home()
    environ = {name: ctx.environ[name] for name in _CARRIED if name in ctx.environ}
    environ |= {k: v for k, v in ctx.environ.items() if k.startswith("TMUXORCH_")}
    environ |= {"TMUXORCH_STATE_DIR": ctx.state_dir, "TMUXORCH_WORKTREES_DIR": ctx.worktrees_dir}
    environ["TMUXORCH_SOCKET"] = ctx.socket
    for name in ("TMUXORCH_AGENT_ID", "TMUXORCH_NAME", "TMUXORCH_TASK_FILE"):
        environ.pop(name, None)  # the watcher is nobody's agent, wherever it was started
    given = [word for k, v in environ.items() for word in ("-e", f"{k}={v}")]
    end = f"={HOME_SESSION}:{{end}}"
    try:
        printed = tmux.run(
            *("new-window", "-d", "-a", "-t", end, "-n", WINDOW, "-c", "/", *given),
            *("-P", "-F", "#{pane_pid}", sys.executable, "-m", "tmuxorch", "watch"),
            *(";", "set-option", "-w", "-t", end, "remain-on-exit", "off"),
            *(";", "set-option", "-w", "-t", end, "automatic-rename", "off"),
        )
    except TmuxFailed as e:
        ctx.narrate(f"the watcher could not be started, `tmuxorch watch` does it: {e.message}")
        return
    started = procfs.identify(int(printed))
    # Over the word of a leader that cannot be seen from here only the new one may write, once it
    # has made sure that nobody leads any more.
    if started is not None and observe_watcher(ctx.state_dir).elsewhere is None:
        # Said for it, so that the next command does not start a second one meanwhile.
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(os.path.join(ctx.state_dir, "watch.lock"), flags, 0o600), "rb"):
            announce(ctx.state_dir, started)
