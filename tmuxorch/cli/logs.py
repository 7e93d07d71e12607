"""`tmuxorch logs`: an agent's screen and scrollback, also after its end."""

from __future__ import annotations

import sys
import time

import click

from tmuxorch.adapters import rundir
from tmuxorch.cli.app import common_options, name_argument
from tmuxorch.cli.session import Session
from tmuxorch.core import naming
from tmuxorch.errors import AmbiguousName, NotRunning, UnknownName
from tmuxorch.model import Agent
from tmuxorch.service.removal import trim_screen

FOLLOW_S = 0.25
ALL_SCROLLBACK = 1_000_000


@click.command("logs")
@name_argument
@click.option("-n", "lines", type=click.IntRange(min=1), help="Only the last N lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes.")
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, lines: int | None, follow: bool) -> int:
    """Print what the agent's terminal shows and showed."""
    session: Session = ctx.obj
    try:
        agent = session.find(name)
    except UnknownName as unknown:
        text = _from_history(session, name)
        if text is None:
            raise unknown from None
        _print(text, lines)
        return 0
    text = _screen(session, agent)
    if text is None:
        raise NotRunning(f"nothing was kept of the screen of {agent.name}")
    _print(text, lines)
    if follow:
        _follow(session, agent, text)
    return 0


def _screen(session: Session, agent: Agent) -> str | None:
    tmux = session.ctx.tmux(agent.socket)
    pane = tmux.find_pane(agent.id)
    if pane is None:
        return rundir.read_screen(session.ctx.run_dir(agent.id))
    return trim_screen(tmux.capture(pane.place.pane, lines=ALL_SCROLLBACK), limit=None)


def _from_history(session: Session, name: str) -> str | None:
    entries = session.ctx.store.history(limit=ALL_SCROLLBACK)
    found = naming.match(name, [(e.name, e.id) for e in entries])
    if not found:
        return None
    if len({n for n, _ in found}) > 1:
        listed = ", ".join(f"{n} ({i})" for n, i in found[:10])
        raise AmbiguousName(f"{name!r} fits several removed agents: {listed}; say more of it")
    # Several of one name: the newest comes first.
    return next(e for e in entries if e.id in {i for _, i in found}).last_screen or ""


def _print(text: str, lines: int | None) -> None:
    shown = text.splitlines()
    for line in shown[-lines:] if lines else shown:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _follow(session: Session, agent: Agent, before: str) -> None:
    """Print new lines as they come until the window closes."""
    while True:
        time.sleep(FOLLOW_S)
        tmux = session.ctx.tmux(agent.socket)
        pane = tmux.find_pane(agent.id)
        if pane is None:
            return
        now = trim_screen(tmux.capture(pane.place.pane, lines=ALL_SCROLLBACK), limit=None)
        for line in new_lines(before.splitlines(), now.splitlines()):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        before = now


def new_lines(before: list[str], now: list[str]) -> list[str]:
    """What came after `before`: `now` without the longest start that was shown already."""
    if before == now[: len(before)]:
        return now[len(before) :]
    # The last line shown may have grown since, and old lines fall off a full scrollback.
    tail = before[-50:-1]
    for start in range(len(now) - len(tail), -1, -1):
        if now[start : start + len(tail)] == tail:
            return now[start + len(tail) :]
    return now
