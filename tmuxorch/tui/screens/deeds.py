"""What keys do to agents: each asks first where something could be lost, then starts a job."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from tmuxorch.model import Agent, HistoryEntry, State, Status
from tmuxorch.tui import actions
from tmuxorch.tui.actions import AtStake, Outcome, Wish
from tmuxorch.tui.lines import Plain, TextLine
from tmuxorch.tui.screens.ask import Ask
from tmuxorch.tui.screens.board import BoardScreen
from tmuxorch.tui.snapshot import Row


class Deeds(BoardScreen):
    """The actions that change something."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: list[str] = []
        self._removed: list[HistoryEntry] = []

    def offered(self) -> Sequence[str]:
        # Undo reaches back before this session too, but only after a removal is it on one's mind.
        return [name for name in super().offered() if name != "undo" or self._removed]

    # -- new -----------------------------------------------------------------------------

    def action_new(self, task: str = "") -> None:
        row = self.row
        repo = self.orch.setting.repo or (row.agent.task.repo if row else None)
        if repo is None:
            self.say("a new worker needs a git repository: start tmuxorch inside one", "warning")
            return
        if not os.path.isdir(repo):
            self.say(f"the repository {repo} is not there any more", "error")
            return
        from tmuxorch.tui.screens.new import NewWorker

        form = NewWorker(repo, task)
        self.app.push_screen(form, self._make)
        setting = self.orch.setting
        self.jobs.start(
            "reading the configuration",
            lambda ctx: actions.form_facts(ctx, setting, repo),
            then=form.learn,
        )

    def _make(self, wish: Wish | None) -> None:
        if wish is None:
            return
        setting = self.orch.setting
        self.say("making a worker\u2026")
        self.jobs.start(
            f"making a worker for {wish.task[:40]!r}",
            lambda ctx: actions.create(ctx, setting, wish),
            then=self._made,
        )

    def _made(self, agent: Agent) -> None:
        self.say(f"{agent.task.name} works on {agent.task.branch}")
        self.words = ""
        self.select(agent.task.id)

    # -- send ----------------------------------------------------------------------------

    def action_send(self) -> None:
        agents = [row.agent for row in self.chosen]
        if not agents:
            return
        from tmuxorch.tui.screens.write import WriteMessage

        to = agents[0].task.name if len(agents) == 1 else f"{len(agents)} agents"
        self.app.push_screen(
            WriteMessage(f"Send to {to}", self._sent), lambda text: self._send(agents, text)
        )

    def _send(self, agents: Sequence[Agent], text: str | None) -> None:
        if text:
            self._sent.insert(0, text)
            self.jobs.start(
                "sending", lambda ctx: actions.send(ctx, agents, text), then=self._tell("sent to")
            )

    def _tell(self, verb: str) -> Callable[[Outcome], None]:
        def tell(outcome: Outcome) -> None:
            if outcome.names:
                shown = ", ".join(outcome.names[:5])
                more = f" and {len(outcome.names) - 5} more" if len(outcome.names) > 5 else ""
                self.say(f"{verb} {shown}{more}")
            for failure in outcome.failures[:3]:
                self.say(failure, "error")

        return tell

    # -- remove and undo -----------------------------------------------------------------

    def action_remove(self) -> None:
        rows = [row for row in self.chosen if row.state is not State.REMOVING]
        if not rows:
            return
        one = rows[0].agent.task.name if len(rows) == 1 else f"{len(rows)} agents"
        ask = Ask(f"Remove {one}?", None, yes="remove")
        self.app.push_screen(ask, lambda yes: self._remove(rows) if yes else None)
        self.jobs.start(
            "looking at what is at stake",
            lambda _: [actions.observe_stake(row) for row in rows],
            then=lambda stakes: ask.learn(stake_lines(stakes)),
        )

    def _remove(self, rows: Sequence[Row]) -> None:
        self.marked -= {row.id for row in rows}
        for row in rows:
            self.steps[row.id] = "removing"
            self.jobs.start(
                f"removing {row.agent.task.name}",
                partial(actions.remove, agents=[row.agent]),
                ids=[row.id],
                then=self._tell_removed,
            )
        self.update()

    def _tell_removed(self, outcome: Outcome) -> None:
        self._removed += outcome.done
        for entry in outcome.done:
            kept = f"; branch {entry.task.branch} is kept" if entry.branch_kept else ""
            saved = "; uncommitted work is saved" if entry.salvage_ref or entry.archive else ""
            self.say(f"removed {entry.task.name}{kept}{saved}; u brings it back")
        for failure in outcome.failures:
            self.say(failure, "error")

    def action_undo(self) -> None:
        setting = self.orch.setting
        entry = self._removed.pop() if self._removed else None
        self.jobs.start(
            "bringing a removed worker back",
            lambda ctx: actions.undo(ctx, setting, entry),
            then=self._restored,
        )

    def _restored(self, agent: Agent) -> None:
        self.say(f"{agent.task.name} is back with its work; R starts it")
        self.select(agent.task.id)

    # -- stop, restart, rename, merge ----------------------------------------------------

    def action_stop(self) -> None:
        rows = [row for row in self.chosen if row.state is State.RUNNING]
        if not rows:
            return
        names = ", ".join(row.agent.task.name for row in rows)
        facts: list[TextLine] = [
            Plain(f"{row.agent.task.name} is {row.status}; what it is doing now is cut off")
            for row in rows
        ]
        facts.append(Plain("worktree, branch and files stay; R starts it again", "label"))
        self.app.push_screen(
            Ask(f"Stop {names[:60]}?", facts, yes="stop", no="let it run"),
            lambda yes: self._stop(rows) if yes else None,
        )

    def _stop(self, rows: Sequence[Row]) -> None:
        setting, agents = self.orch.setting, [row.agent for row in rows]
        self.jobs.start(
            "stopping",
            lambda ctx: actions.stop(ctx, setting, agents),
            ids=[row.id for row in rows],
            then=self._tell("stopped"),
        )

    def action_restart(self) -> None:
        """Start ended ones again; from a lost one, all lost ones; a running one is asked about."""
        rows = self.chosen
        if len(rows) == 1 and rows[0].state is State.LOST:
            rows = [row for row in self.rows if row.state is State.LOST]
        live = [row for row in rows if row.state is State.RUNNING]
        if not live:
            self._restart(rows)
            return
        facts: list[TextLine] = [
            Plain(f"{row.agent.task.name} is {row.status}; what it is doing now is cut off")
            for row in live
        ]
        facts.append(Plain("it begins again in its worktree; nothing there changes", "label"))
        self.app.push_screen(
            Ask(f"Restart {live[0].agent.task.name}?", facts, yes="restart", no="let it run"),
            lambda yes: self._restart(rows) if yes else None,
        )

    def _restart(self, rows: Sequence[Row]) -> None:
        setting, agents = self.orch.setting, [row.agent for row in rows]
        if agents:
            self.jobs.start(
                "restarting",
                lambda ctx: actions.restart(ctx, setting, agents),
                ids=[row.id for row in rows],
                then=self._tell("running again:"),
            )

    def action_rename(self) -> None:
        row = self.row
        if row is not None:
            from tmuxorch.tui.screens.write import WriteName

            agent = row.agent
            self.app.push_screen(
                WriteName(f"Rename {agent.task.name}", agent.task.name),
                lambda name: self._rename(agent, name),
            )

    def _rename(self, agent: Agent, name: str | None) -> None:
        if name and name != agent.task.name:
            self.jobs.start(
                "renaming",
                lambda ctx: actions.rename(ctx, agent, name),
                then=lambda renamed: self.say(f"{agent.task.name} is now {renamed.name}"),
            )

    def action_merge(self) -> None:
        row = self.row
        if row is None:
            return
        ask = Ask(
            f"Merge {row.agent.task.name} into {row.agent.task.base}?",
            None,
            yes="merge",
            no="leave",
        )
        found: list[AtStake] = []

        def learn(stake: AtStake) -> None:
            found.append(stake)
            ask.learn(merge_lines(row, stake))

        self.app.push_screen(ask, lambda yes: self._merge(row.agent, found[0]) if yes else None)
        self.jobs.start("looking at its work", lambda _: actions.observe_stake(row), then=learn)

    def _merge(self, agent: Agent, stake: AtStake) -> None:
        self.jobs.start(
            f"merging {agent.task.name}",
            lambda ctx: actions.merge(ctx, agent, commit=stake.uncommitted),
            ids=[agent.task.id],
            then=self.say,
        )


def merge_lines(row: Row, stake: AtStake) -> list[TextLine]:
    """What a merge would bring, and what it does with the rest."""
    lines: list[TextLine] = [Plain(f"\u2022 {line}", "strong") for line in stake.lines]
    if stake.problem:
        lines.append(Plain(stake.problem, "bad"))
    if stake.uncommitted:
        lines.append(Plain("what is not committed is committed to its branch first", "label"))
    lines.append(Plain("if it does not fit, nothing is changed", "label"))
    if row.status is Status.WORKING:
        lines.append(Plain(f"{row.agent.task.name} is still working", "warn"))
    return lines


def stake_lines(stakes: Sequence[AtStake]) -> list[TextLine]:
    """What a removal would touch and what becomes of it: some lines for one, one line each for
    many."""
    if len(stakes) > 1:
        return [_short_stake(stake) for stake in stakes]
    stake = stakes[0]
    lines: list[TextLine] = []
    if stake.running:
        also = f" with {stake.processes - 2} sub-processes" if stake.processes > 2 else ""
        lines.append(Plain(f"it is running{also}: that is ended", "warn"))
    if stake.problem:
        lines.append(Plain(stake.problem, "bad"))
        lines.append(Plain("what cannot be saved is not deleted", "label"))
    elif stake.lines:
        lines += [Plain(f"\u2022 {line}", "strong") for line in stake.lines]
        kept = f", branch {stake.branch} is kept" if stake.branch else ""
        lines.append(Plain(f"all of it is saved first{kept}; u brings it back", "label"))
    else:
        lines.append(Plain("no work is at stake", "label"))
    return lines


def _short_stake(stake: AtStake) -> TextLine:
    said = stake.problem or "; ".join(stake.lines) or "no work at stake"
    alive = "running, " if stake.running else ""
    return Plain(f"{stake.name}: {alive}{said}", "strong" if stake.lines else "")
