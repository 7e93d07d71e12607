"""`tmuxorch rm`: save and remove agents."""

from __future__ import annotations

import sys

import click

from tmuxorch.cli.app import common_options, complete_name, json_option
from tmuxorch.cli.output import ask, print_json
from tmuxorch.cli.session import Session
from tmuxorch.core import view
from tmuxorch.core.observation import Unknown
from tmuxorch.core.stake import describe
from tmuxorch.errors import WorkAtStake
from tmuxorch.model import Agent, HistoryEntry, Reason
from tmuxorch.service.care.repository_lock import mend
from tmuxorch.service.removal import removal
from tmuxorch.service.removal.work import observe_stake
from tmuxorch.service.workers.visibility import take_as_gone


@click.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_name)
@click.option("-y", "--yes", is_flag=True, help="Do not ask: save what is at stake and remove.")
@click.option("--keep-branch", is_flag=True, help="Keep the branch even if it holds nothing.")
@click.option("--gone", is_flag=True, help="The machine or container it ran on is gone for good.")
@json_option
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    names: tuple[str, ...],
    yes: bool,
    keep_branch: bool,
    gone: bool,
    as_json: bool,
) -> int:
    """Remove agents; uncommitted work is saved first and branches with work are kept."""
    session: Session = ctx.obj
    agents = list({a.task.id: a for a in (session.find(name) for name in names)}.values())
    if not yes:
        for repo in {agent.task.repo for agent in agents}:
            mend(session.ctx, repo)  # git may not be able to look before
        agents = _agreed(agents)
    if gone:
        agents = [take_as_gone(session.ctx, agent) for agent in agents]
    entries = []
    for agent in agents:
        entry = removal.remove(
            session.ctx,
            agent,
            reason=Reason.USER,
            keep_branch=keep_branch,
        )
        entries.append(entry)
        session.narrate(_words(entry))
    if as_json:
        print_json([view.history_json(entry) for entry in entries])
    return 0


def _agreed(agents: list[Agent]) -> list[Agent]:
    """Those that may go: all with nothing at stake, and the others if the person says so."""
    asked = []
    for agent in agents:
        stake = observe_stake(agent)
        if isinstance(stake, Unknown):
            asked.append((agent, [f"what is in it cannot be told: {stake.why}"]))
        elif not stake.empty:
            asked.append((agent, describe(stake)))
    if not asked:
        return agents
    lines = [
        line for agent, said in asked for line in (f"{agent.task.name}:", *("  " + s for s in said))
    ]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        names = ", ".join(agent.task.name for agent, _ in asked)
        raise WorkAtStake(
            f"work is at stake in {names}, so nothing was removed; look at it, or use -y to save "
            "it and remove\n" + "\n".join(lines)
        )
    sys.stderr.write("\n".join(lines) + "\n")
    refused = {
        agent.task.id for agent, _ in asked if not ask(f"Save this and remove {agent.task.name}?")
    }
    return [agent for agent in agents if agent.task.id not in refused]


def _words(entry: HistoryEntry) -> str:
    kept = f"; branch {entry.task.branch} is kept" if entry.branch_kept else ""
    saved = "; its work is saved" if entry.salvage_ref or entry.archive else ""
    name = entry.task.name
    return f"removed {name}{kept}{saved} (tmuxorch restore {name} brings it back)"
