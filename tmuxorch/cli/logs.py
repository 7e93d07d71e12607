"""`tmuxorch logs`: an agent's screen and scrollback, also after its end."""

from __future__ import annotations

import re
import sys
import time

import click

from tmuxorch.cli import output
from tmuxorch.cli.app import common_options, json_errors_option, name_argument
from tmuxorch.cli.session import Session
from tmuxorch.errors import NotRunning, UnknownName
from tmuxorch.model import Agent
from tmuxorch.service.removal.removal import is_shim_note
from tmuxorch.service.workers import inspection

FOLLOW_S = 0.25
ALL_SCROLLBACK = 1_000_000
# What tmux puts around links and line drawings when it tells colours.
_FRAMES = re.compile(r"\x1b\]8;[^\x07\x1b]*(?:\x1b\\|\x07)|[\x0e\x0f]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


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
    colours = output.wants_colour(sys.stdout)
    screen = _capture(session, agent, colours)
    if screen is None:
        screen = inspection.read_saved_screen(session.ctx, agent)
    if screen is None:
        raise NotRunning(f"nothing was kept of the screen of {agent.task.name}")
    _print(screen, lines)
    if follow:
        _follow(session, agent, screen, colours)
    return 0


def _capture(session: Session, agent: Agent, colours: bool) -> str | None:
    """All that its pane holds, byte for byte, without what comes after the agent's last line."""
    text = inspection.capture_screen(session.ctx, agent, scrollback=ALL_SCROLLBACK, colours=colours)
    if text is None:
        return None
    lines = (_FRAMES.sub("", text) if colours else text).split("\n")
    while lines and (not (last := _COLOUR.sub("", lines[-1]).strip()) or is_shim_note(last)):
        lines.pop()
    return "\n".join(lines)


def _print(text: str, lines: int | None) -> None:
    shown = text.removesuffix("\n").split("\n") if text else []
    _write(shown[-lines:] if lines else shown)


def _write(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    output.write_exactly(text.encode("utf-8", "surrogateescape"))
    sys.stdout.flush()


def _follow(session: Session, agent: Agent, before: str, colours: bool) -> None:
    """Print new lines as they come until the window closes."""
    while True:
        time.sleep(FOLLOW_S)
        now = _capture(session, agent, colours)
        if now is None:
            return
        _write(new_lines(before.split("\n"), now.split("\n")))
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
