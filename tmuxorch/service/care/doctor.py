"""Is everything well: the tools, the store, the watcher, and every agent's facts."""

from __future__ import annotations

import os
import platform
import sqlite3
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch import __version__
from tmuxorch.adapters.git import call
from tmuxorch.adapters.store.watchfile import observe_watcher
from tmuxorch.adapters.tmux.server import check_version, find_program
from tmuxorch.core.reconcile import Action, Policy, decide, facts
from tmuxorch.core.view import age
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.health.activity import Doing
from tmuxorch.service.health.observer import Observer
from tmuxorch.service.health.panes import Servers
from tmuxorch.service.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tmuxorch.service.context import Context

STALE_PASS_S = 10.0  # a watcher passes once a second; only a stuck one is silent for longer


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was found."""

    name: str
    ok: bool
    detail: str


def check_tools() -> list[Check]:
    """The programs that tmuxorch stands on."""
    return [
        Check("tmuxorch", True, f"{__version__}, Python {platform.python_version()}"),
        _try("tmux", lambda: check_version(find_program())),
        _try("git", call.check_version),
        Check("sqlite", True, sqlite3.sqlite_version),
    ]


def check_state_dir(path: str) -> Check:
    if not os.path.isdir(path):
        return Check("state", True, f"{path} is made when the first agent is")
    mode = stat.S_IMODE(os.stat(path).st_mode)
    private = mode & 0o077 == 0 and os.access(path, os.R_OK | os.W_OK | os.X_OK)
    return Check("state", private, f"{path}, mode {mode:04o}")


def check_store(ctx: Context) -> Check:
    trouble = ctx.store.find_damage()
    if trouble:
        return Check("store", False, f"damaged: {trouble}; `tmuxorch doctor --repair` rebuilds it")
    return Check("store", True, f"whole, {len(ctx.store.agents())} agents")


def check_watcher(ctx: Context) -> Check:
    watcher = observe_watcher(ctx.state_dir)
    if not watcher.alive:
        is_fine = not ctx.store.agents()
        hint = "" if is_fine else ", so the list may be old; `tmuxorch watch` starts one"
        return Check("watcher", is_fine, f"none runs{hint}")
    silent_s = ctx.clock() - (watcher.last_pass_at or 0.0)
    detail = f"pid {watcher.pid}, last pass {age(silent_s)} ago"
    return Check("watcher", silent_s < STALE_PASS_S, detail)


def check_agents(ctx: Context) -> Iterator[Check]:
    """Window, process and worktree of every agent; not well if the record says otherwise."""
    servers = Servers()
    config_of = ctx.settings.for_ending
    observer = Observer(ctx.state_dir, servers, stakes={}, doing=Doing(config_of, ctx.clock))
    agents = ctx.store.agents()
    try:
        observer.observe(agents, everything=True)  # what is gone must be missing twice
        seen = observer.observe(agents, everything=True)
    finally:
        servers.close()
    for agent in agents:
        cleanup = config_of(agent.task.repo).cleanup
        policy = Policy(cleanup.dead, cleanup.never_started_s)
        verdict = decide(agent, seen[agent.task.id], policy, ctx.clock())
        there = os.path.isdir(agent.task.worktree)
        detail = (
            f"{agent.state}; {facts(seen[agent.task.id])}, worktree {'there' if there else 'gone'}"
        )
        if agent.damage:
            detail = f"its record cannot be read: {agent.damage}"
        as_recorded = verdict.action in (Action.LEAVE, Action.SHOW) and not agent.damage
        if not as_recorded:
            detail += f"; to do: {verdict.action}"
        yield Check(agent.task.name, as_recorded and there, detail)


def check_orphans(ctx: Context) -> Iterator[Check]:
    """What lies around, counted; what a killed git left is named, for it may stop git itself."""
    found = sweep.observe_orphans(ctx)
    for orphan in found:
        if orphan.kind is sweep.Thing.FILE and orphan.repo is not None:
            how = orphan.command or "`tmuxorch doctor --repair` clears it"
            yield Check("repository", False, f"{orphan.path}: {orphan.reason}; {how}")
    if old := sum(o.kind is sweep.Thing.HISTORY for o in found):
        detail = f"{old} of an older kind, which a push of all refs publishes"
        yield Check("saves", False, f"{detail}; `tmuxorch doctor --repair` makes them anew")
    if not found:
        yield Check("orphans", True, "none")
        return
    counts = {kind: sum(o.kind is kind for o in found) for kind in {o.kind for o in found}}
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    yield Check("orphans", False, f"{listed}; `tmuxorch sweep` lists them")


def _try(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except (TmuxorchError, OSError) as e:
        return Check(name, False, str(e))
