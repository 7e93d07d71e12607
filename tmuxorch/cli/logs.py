"""`tmuxorch logs`: an agent's screen and scrollback, also after its end."""

from __future__ import annotations

import sys
import time

import click

from tmuxorch.adapters import rundir
from tmuxorch.cli.app import common_options, json_errors_option, name_argument
from tmuxorch.cli.session import Session
from tmuxorch.errors import NotRunning, UnknownName
from tmuxorch.model import Agent
from tmuxorch.service.removal import trim_screen

FOLLOW_S = 0.25
ALL_SCROLLBACK = 1_000_000


@click.command("logs")
@name_argument
@click.option("-n", "lines", type=click.IntRange(min=1), help="Only the last N lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on printing what comes.")
@json_errors_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str, lines: int | None, follow: bool) -> int:
    """Print what the agent's terminal shows and showed."""
    session: Session = ctx.obj
    try:
        agent = session.find(name)
    except UnknownName as unknown:
        try:
            text = session.find_removed(name).last_screen or ""
        except UnknownName:
            raise unknown from None
        _print(text, lines)
        return 0
    screen = _screen(session, agent)
    if screen is None:
        raise NotRunning(f"nothing was kept of the screen of {agent.name}")
    _print(screen, lines)
    if follow:
        _follow(session, agent, screen)
    return 0


def _screen(session: Session, agent: Agent) -> str | None:
    tmux = session.ctx.tmux(agent.socket)
    pane = tmux.find_pane(agent.id)
    if pane is None:
        return rundir.read_screen(session.ctx.run_dir(agent.id))
    return trim_screen(tmux.capture(pane.place.pane, lines=ALL_SCROLLBACK), limit=None)


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
            rest = now[start + len(tail) :]
            return rest[1:] if rest[:1] == before[-1:] else rest
    return now
