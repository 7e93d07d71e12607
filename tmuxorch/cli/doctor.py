"""`tmuxorch doctor`: is everything well?"""

from __future__ import annotations

import os
import sys

import click

from tmuxorch import paths
from tmuxorch.cli import paint
from tmuxorch.cli.app import common_options, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.care import doctor, repair
from tmuxorch.service.care.doctor import Check
from tmuxorch.service.care.second_opinion import check_second_opinions
from tmuxorch.service.sweep import sweep


@click.command("doctor")
@click.option("--repair", "mend", is_flag=True, help="Rebuild lost records from their marks.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, mend: bool, as_json: bool) -> int:
    """Look at the tools, the store, the watcher and every agent; status 1 if something is wrong."""
    session: Session = ctx.obj
    if mend:
        _repair(session)
    checks = [*doctor.check_tools(), doctor.check_state_dir(paths.state_dir(os.environ))]
    agents: list[Check] = []
    try:
        session.config()
        checks.append(doctor.check_store(session.ctx))
        checks.append(doctor.check_watcher(session.ctx))
        checks.extend(check_second_opinions(session.ctx))
        agents = list(doctor.check_agents(session.ctx))
        checks.extend(doctor.check_orphans(session.ctx))
    except TmuxorchError as e:
        checks.append(Check(e.code, False, e.message))
    well = all(check.ok for check in (*checks, *agents))
    if as_json:
        print_json(
            {
                "ok": well,
                "checks": [_as_json(check) for check in checks],
                "agents": [_as_json(check) for check in agents],
            }
        )
    else:
        rows = [("ok" if c.ok else "BAD", c.name, c.detail) for c in (*checks, *agents)]
        sys.stdout.write(paint.table(rows, colours=False, width=0))
    if not well:
        session.narrate("not everything is well; see above")
    return 0 if well else 1


def _repair(session: Session) -> None:
    aside = repair.set_damaged_store_aside(paths.state_dir(os.environ))
    if aside:
        session.narrate(f"the damaged store was moved to {aside}")
    repair.mend_repositories(session.ctx)
    for orphan in sweep.convert_old_saves(session.ctx, set()):
        session.narrate(
            f"{orphan.name}: {'its save was made anew' if orphan.done else orphan.reason}"
        )
    for agent in repair.rebuild(session.ctx):
        session.narrate(f"{agent.task.name} is recorded again, as {agent.state}")


def _as_json(check: Check) -> dict[str, object]:
    return {"name": check.name, "ok": check.ok, "detail": check.detail}
