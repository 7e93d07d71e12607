"""`tmuxorch watch`: the health loop in the foreground."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

import click

from tmuxorch.cli import border
from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.core.literal import literal
from tmuxorch.service.context import Context, open_context
from tmuxorch.service.health.leader import take_lead
from tmuxorch.service.health.loop import Deed, Health
from tmuxorch.service.health.watcher import look_once, watch


@click.command("watch")
@click.option("--once", is_flag=True, help="One full pass, then say what was done.")
@click.option("--no-events", is_flag=True, help="Be woken by time only, once a second.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, once: bool, no_events: bool, as_json: bool) -> int:
    """Match what is recorded with what is really there, and act on it.

    One watcher leads; `new` starts it in the window `watch` of the tmux session `tmuxorch`.
    """
    session: Session = ctx.obj
    done: list[Deed] = []
    session.config()
    health = Health(
        session.ctx,
        open_context=lambda: own_context(session),
        tell=done.append if once else lambda deed: _print(deed, as_json),
        on_bug=report_bug,
    )
    if once:
        look_once(session.ctx, health)
        health.close()
        if as_json:
            print_json([_as_json(deed) for deed in done])
        else:
            for deed in done:
                _print(deed, False)
        return 0
    leadership = take_lead(session.ctx.state_dir)
    session.narrate(f"watching as pid {os.getpid()}; everything that is done is told here")
    watch(health, leadership, events=not no_events, on_bug=report_bug)
    return 0


def own_context(session: Session) -> Context:
    """A context for another thread: a store is not shared between them."""
    ctx = session.ctx
    return open_context(ctx.environ, socket=ctx.socket, tmux_timeout_s=ctx.tmux_timeout_s)


def _print(deed: Deed, as_json: bool) -> None:
    if as_json:
        import json

        sys.stdout.write(json.dumps(_as_json(deed)) + "\n")
    else:
        at = time.strftime("%H:%M:%S")
        sys.stdout.write(literal(f"{at} {deed.name}: {deed.what}: {deed.why}") + "\n")
    with suppress(OSError):  # a log on a full disk
        sys.stdout.flush()


def _as_json(deed: Deed) -> dict[str, str]:
    return {"id": deed.id, "name": deed.name, "did": deed.what, "why": deed.why}


def report_bug(bug: BaseException) -> None:
    path = border.write_log(bug, ["watch"])
    sys.stderr.write(f"a pass failed: {literal(repr(bug))}; the log is {path}\n")
