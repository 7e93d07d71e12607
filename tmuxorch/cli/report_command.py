"""`tmuxorch report` with options that need the parser."""

from __future__ import annotations

import os
import time

import click

from tmuxorch.cli.app import common_options, complete_name, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.report import report_own
from tmuxorch.cli.session import Session
from tmuxorch.service.workers.reporting import REPORTABLE, parse_status, report


@click.command("report")
@click.argument("status", metavar="|".join(REPORTABLE))
@click.option("--agent", "name", metavar="ID", shell_complete=complete_name, help="Another agent.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, status: str, name: str | None, as_json: bool) -> int:
    """Say what an agent is doing, from the hooks of its own program (see docs/hooks.md).

    By default that of the agent in whose environment it runs; outside of one it does nothing.
    """
    session: Session = ctx.obj
    name = name or os.environ.get("TMUXORCH_AGENT_ID")
    if not name:
        report_own(status)
        if as_json:
            print_json(None)
        return 0
    agent = session.find(name)
    report(session.ctx.state_dir, agent.task.id, parse_status(status), at=time.time())
    if as_json:
        print_json(session.look(session.ctx.store.agent(agent.task.id) or agent))
    return 0
