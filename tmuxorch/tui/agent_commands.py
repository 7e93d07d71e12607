"""Commands that make an agent or do something with one that is there.

Each asks first where something could be lost, and then has it done by a job. Dialogs are imported
where they are opened: the first frame does not wait for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tmuxorch.model import State
from tmuxorch.tui import service_calls
from tmuxorch.tui.lines import Plain, TextLine

if TYPE_CHECKING:
    from tmuxorch.model import Agent
    from tmuxorch.tui.screens.board import BoardScreen
    from tmuxorch.tui.service_calls import FilledForm, Outcome, Sent, StakeReport
    from tmuxorch.tui.snapshot import AgentRow

_SENT = {
    "delivered": "delivered to {}",
    "queued": "queued by {}",
    "sent": "sent to {}, not confirmed",
}


# -- new ---------------------------------------------------------------------------------


def new(board: BoardScreen) -> None:
    row, workplace = board.roster.row, board.workplace
    repo = workplace.repo or (row.agent.task.repo if row else None)
    if repo is None:
        board.say("a new worker needs a git repository: start tmuxorch inside one", "warning")
        return
    if not os.path.isdir(repo):
        board.say(f"the repository {repo} is not there any more", "error")
        return
    from tmuxorch.tui.screens.worker_form import WorkerForm

    form = WorkerForm(repo)
    board.app.push_screen(form, lambda filled: _make(board, filled))
    board.jobs.start(
        "reading the configuration",
        lambda ctx: service_calls.form_facts(ctx, workplace, repo),
        then=form.learn,
    )


def _make(board: BoardScreen, form: FilledForm | None) -> None:
    if form is None:
        return
    workplace = board.workplace
    board.say("making a worker\u2026")
    board.jobs.start(
        f"making a worker for {form.task[:40]!r}",
        lambda ctx: service_calls.create(ctx, workplace, form),
        then=lambda agent: _tell_made(board, agent),
    )


def _tell_made(board: BoardScreen, agent: Agent) -> None:
    board.say(f"{agent.task.name} works on {agent.task.branch}")
    board.roster.words = ""
    board.select(agent.task.id)


# -- send --------------------------------------------------------------------------------


def send(board: BoardScreen) -> None:
    agents = [row.agent for row in board.roster.chosen]
    if agents:
        _write(board, agents)


def _write(board: BoardScreen, agents: Sequence[Agent], draft: str = "", refusal: str = "") -> None:
    from tmuxorch.tui.screens.write import WriteMessage

    to = agents[0].task.name if len(agents) == 1 else f"{len(agents)} agents"
    board.app.push_screen(
        WriteMessage(f"Send to {to}", board.recent.sent, draft=draft, refusal=refusal),
        lambda text: _send(board, agents, text),
    )


def _send(board: BoardScreen, agents: Sequence[Agent], text: str | None) -> None:
    if not text:
        return
    if board.recent.sent[:1] != [text]:
        board.recent.sent.insert(0, text)
    workplace = board.workplace
    board.jobs.start(
        "sending",
        lambda ctx: service_calls.send(ctx, workplace, agents, text),
        then=lambda sent: _tell_sent(board, sent, text),
    )


def _tell_sent(board: BoardScreen, outcome: Sent, text: str) -> None:
    """Those who did not get it are written to again, with the draft as it was."""
    for delivery in dict.fromkeys(delivery for _, delivery in outcome.sent):
        names = [name for name, what in outcome.sent if what is delivery]
        board.say(_SENT[delivery].format(_listed(names)))
    if outcome.refused:
        refusal = "\n".join(why for _, why in outcome.refused[:3])
        _write(board, [agent for agent, _ in outcome.refused], text, refusal)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _teller(board: BoardScreen, verb: str) -> Callable[[Outcome], None]:
    def tell(outcome: Outcome) -> None:
        if outcome.names:
            board.say(f"{verb} {_listed(outcome.names)}")
        for failure in outcome.failures[:3]:
            board.say(failure, "error")

    return tell


# -- stop and restart --------------------------------------------------------------------


def stop(board: BoardScreen) -> None:
    rows = [row for row in board.roster.chosen if row.state is State.RUNNING]
    if not rows:
        return
    from tmuxorch.tui.screens.confirmation import Confirmation

    names = ", ".join(row.agent.task.name for row in rows)
    facts = _cut_off(rows)
    facts.append(Plain("worktree, branch and files stay; R starts it again", "label"))
    board.app.push_screen(
        Confirmation(f"Stop {names[:60]}?", facts, yes="stop", no="let it run"),
        lambda yes: _stop(board, rows) if yes else None,
    )


def _cut_off(rows: Sequence[AgentRow]) -> list[TextLine]:
    words = "what it is doing now is cut off"
    return [Plain(f"{row.agent.task.name} is {row.status}; {words}") for row in rows]


def _stop(board: BoardScreen, rows: Sequence[AgentRow]) -> None:
    workplace, agents = board.workplace, [row.agent for row in rows]
    board.jobs.start(
        "stopping",
        lambda ctx: service_calls.stop(ctx, workplace, agents),
        ids=[row.id for row in rows],
        then=_teller(board, "stopped"),
    )


def restart(board: BoardScreen) -> None:
    """Start ended ones again; from a lost one, all lost ones; a running one is asked about."""
    rows = board.roster.chosen
    if len(rows) == 1 and rows[0].state is State.LOST:
        rows = [row for row in board.roster.rows if row.state is State.LOST]
    live = [row for row in rows if row.state is State.RUNNING]
    if not live:
        _restart(board, rows)
        return
    from tmuxorch.tui.screens.confirmation import Confirmation

    facts = _cut_off(live)
    facts.append(Plain("it begins again in its worktree; nothing there changes", "label"))
    board.app.push_screen(
        Confirmation(f"Restart {live[0].agent.task.name}?", facts, yes="restart", no="let it run"),
        lambda yes: _restart(board, rows) if yes else None,
    )


def _restart(board: BoardScreen, rows: Sequence[AgentRow]) -> None:
    workplace, agents = board.workplace, [row.agent for row in rows]
    if agents:
        board.jobs.start(
            "restarting",
            lambda ctx: service_calls.restart(ctx, workplace, agents),
            ids=[row.id for row in rows],
            then=_teller(board, "running again:"),
        )


# -- rename and merge --------------------------------------------------------------------


def rename(board: BoardScreen) -> None:
    if (row := board.roster.row) is not None:
        from tmuxorch.tui.screens.write import WriteName

        agent = row.agent
        board.app.push_screen(
            WriteName(f"Rename {agent.task.name}", agent.task.name),
            lambda name: _rename(board, agent, name),
        )


def _rename(board: BoardScreen, agent: Agent, name: str | None) -> None:
    if name and name != agent.task.name:
        board.jobs.start(
            "renaming",
            lambda ctx: service_calls.rename(ctx, agent, name),
            then=lambda renamed: board.say(f"{agent.task.name} is now {renamed.task.name}"),
        )


def merge(board: BoardScreen) -> None:
    if (row := board.roster.row) is None:
        return
    from tmuxorch.tui.screens.confirmation import Confirmation
    from tmuxorch.tui.stake_lines import merge_lines

    agent = row.agent
    question = Confirmation(
        f"Merge {agent.task.name} into {agent.task.base}?", None, yes="merge", no="leave"
    )
    found: list[StakeReport] = []

    def learn(stake: StakeReport) -> None:
        found.append(stake)
        question.learn(merge_lines(row, stake))

    board.app.push_screen(question, lambda yes: _merge(board, agent, found[0]) if yes else None)
    board.jobs.start("looking at its work", lambda _: service_calls.observe_stake(row), then=learn)


def _merge(board: BoardScreen, agent: Agent, stake: StakeReport) -> None:
    board.jobs.start(
        f"merging {agent.task.name}",
        lambda ctx: service_calls.merge(ctx, agent, commit=stake.uncommitted),
        ids=[agent.task.id],
        then=board.say,
    )
