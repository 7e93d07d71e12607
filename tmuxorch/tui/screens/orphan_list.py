"""Orphans with their reasons: choose some, and clear them away."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tmuxorch.core.literal import shown
from tmuxorch.core.sizes import human_size
from tmuxorch.service.sweep.sweep import Disposal, Orphan
from tmuxorch.tui import service_calls
from tmuxorch.tui.jobs import Jobs
from tmuxorch.tui.lines import Fact, Plain, TextLine
from tmuxorch.tui.screens.choice_list import ChoiceList
from tmuxorch.tui.screens.confirmation import Confirmation
from tmuxorch.tui.workplace import Workplace


class OrphanList(ChoiceList[Orphan]):
    """Nothing is done before the person has chosen and agreed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "choose", "choose"),
        Binding("asterisk", "choose_all", "choose all"),
        Binding("enter", "apply", "clear away"),
    ]

    def __init__(self, jobs: Jobs, workplace: Workplace) -> None:
        super().__init__("Sweep: what no agent owns any more")
        self._jobs = jobs
        self._workplace = workplace
        self._chosen: set[int] = set()
        self._looked = False

    def on_mount(self) -> None:
        self._look()

    def _look(self) -> None:
        workplace = self._workplace
        self._jobs.start(
            "looking for orphans",
            lambda ctx: service_calls.observe_orphans(ctx, workplace),
            then=self._found,
        )

    def _found(self, orphans: list[Orphan]) -> None:
        self._looked = True
        self._chosen.clear()
        self.learn(orphans)

    def line(self, item: Orphan) -> str:
        mark = "\u25a0" if self.items.index(item) in self._chosen else "\u25a1"
        return f"{mark if service_calls.can_sweep(item) else ' '} {_columns(item)}"

    def about(self, item: Orphan) -> list[TextLine]:
        return [
            Fact("what", f"{item.kind} {item.name}"),
            Fact("repository", item.repo or "unknown"),
            Fact("why", item.reason),
            Fact("then", _WORDS[item.action]),
        ]

    def empty(self) -> list[TextLine]:
        return [Plain("nothing is left behind" if self._looked else "looking\u2026", "label")]

    def offered(self) -> list[tuple[str, str, str]]:
        return [("space", "choose", "choose"), ("*", "all", "choose_all"),
                ("Enter", "clear away the chosen", "apply"), ("Esc", "back", "leave")]  # fmt: skip

    def on_option_list_option_selected(self) -> None:
        self.action_apply()

    def action_choose(self) -> None:
        item = self.highlighted
        if item is not None and service_calls.can_sweep(item):
            self._chosen ^= {self.items.index(item)}
            self.learn(self.items)
            self.action_move(1)

    def action_choose_all(self) -> None:
        able = {i for i, item in enumerate(self.items) if service_calls.can_sweep(item)}
        self._chosen = set() if self._chosen >= able else able
        self.learn(self.items)

    def action_apply(self) -> None:
        chosen = [self.items[i] for i in sorted(self._chosen)]
        if not chosen:
            self.notify("choose some with space first", markup=False)
            return
        facts: list[TextLine] = [Plain(_columns(item)) for item in chosen]
        facts.append(Plain("work in a worktree is saved before it goes", "label"))
        self.app.push_screen(
            Confirmation(f"Clear away {len(chosen)}?", facts, yes="clear away", no="leave"),
            lambda yes: self._apply(chosen) if yes else None,
        )

    def _apply(self, chosen: list[Orphan]) -> None:
        workplace = self._workplace
        self._jobs.start(
            "sweeping", lambda ctx: service_calls.sweep(ctx, workplace, chosen), then=self._swept
        )

    def _swept(self, outcome: service_calls.Outcome) -> None:
        if outcome.names:
            self.notify(f"cleared away {len(outcome.names)}", markup=False)
        for failure in outcome.failures[:3]:
            self.notify(shown(failure), severity="error", markup=False)
        self._look()


def _columns(item: Orphan) -> str:
    size = "" if item.bytes is None else human_size(item.bytes)
    return f"{item.kind:<9} {size:>9}  {item.action:<8} {item.name}"


_WORDS = {
    Disposal.REMOVE: "it is removed",
    Disposal.SALVAGE: "its work is saved first",
    Disposal.REPORT: "it is only reported; end it yourself if you want",
    Disposal.KEEP: "it is kept",
}
