"""`tmuxorch restart`: start an agent again in its worktree."""

from __future__ import annotations

import click

from tmuxorch.cli.app import common_options, complete_name, json_option
from tmuxorch.cli.output import print_json
from tmuxorch.cli.session import Session
from tmuxorch.cli.watch import own_context, report_bug
from tmuxorch.errors import TmuxorchError, UsageError
from tmuxorch.model import Agent, State
from tmuxorch.service.health.leader import ensure_watcher
from tmuxorch.service.health.loop import Health
from tmuxorch.service.health.watcher import settle
from tmuxorch.service.workers import running


@click.command("restart")
@click.argument("name", required=False, shell_complete=complete_name)
@click.option("--fresh", is_flag=True, help="Begin a new conversation.")
@click.option("--lost", is_flag=True, help="All that a tmux crash or a reboot interrupted.")
@json_option
@common_options
@click.pass_context
def command(ctx: click.Context, name: str | None, fresh: bool, lost: bool, as_json: bool) -> int:
    """Start an agent again, resuming its conversation where its profile can."""
    session: Session = ctx.obj
    if lost == (name is not None):
        raise UsageError("name the agent to start again, or use --lost for all lost ones")
    agents = _lost(session) if name is None else [session.find(name)]
    shown, failed = [], []
    for agent in agents:
        try:
            config = session.config(agent.task.repo)
            restarted = running.restart(session.ctx, config, agent, fresh=fresh)
        except TmuxorchError as e:
            if name is not None:
                raise
            failed.append(f"{agent.task.name}: {e.message}")
            continue
        shown.append(session.look(restarted))
        session.narrate(f"{restarted.task.name} runs again")
    ensure_watcher(session.ctx)
    if as_json:
        print_json(shown if name is None else shown[0])
    if failed:
        raise TmuxorchError("not all could be started again\n" + "\n".join(failed))
    return 0


def _lost(session: Session) -> list[Agent]:
    """The lost agents of this repository, outside one of all, once it is known who is."""
    session.config()
    health = Health(
        session.ctx,
        open_context=lambda: own_context(session),
        tell=lambda _: None,
        on_bug=report_bug,
    )
    try:
        settle(session.ctx, health)
    finally:
        health.close()
    here = session.repo_root()
    agents = [a for a in session.ctx.store.agents(repo=here) if a.state is State.LOST]
    if not agents:
        session.narrate("no agent is lost")
    return agents
