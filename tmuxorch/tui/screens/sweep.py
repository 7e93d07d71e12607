"""Orphans with their reasons: choose some, and clear them away."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from tmuxorch.core.literal import shown
from tmuxorch.core.sizes import human_size
from tmuxorch.service.sweep.sweep import Orphan
from tmuxorch.tui import actions
from tmuxorch.tui.lines import Fact, Plain, TextLine
from tmuxorch.tui.screens.ask import Ask
from tmuxorch.tui.screens.pick import Pick
from tmuxorch.tui.setting import Setting


class SweepScreen(Pick[Orphan]):
    """Nothing is done before the person has chosen and agreed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "choose", "choose"),
        Binding("asterisk", "choose_all", "choose all"),
        Binding("enter", "apply", "clear away"),
    ]

    def __init__(self, setting: Setting) -> None:
        super().__init__("Sweep: what no agent owns any more")
        self._setting = setting
        self._chosen: set[int] = set()
        self._looked = False

    def on_mount(self) -> None:
        self._look()

    def _look(self) -> None:
        setting = self._setting
        self.app.jobs.start(  # type: ignore[attr-defined]
            "looking for orphans",
            lambda ctx: actions.observe_orphans(ctx, setting),
            then=self._found,
        )

    def _found(self, orphans: list[Orphan]) -> None:
        self._looked = True
        self._chosen.clear()
        self.learn(orphans)

    def line(self, item: Orphan) -> str:
        mark = "\u25a0" if self.items.index(item) in self._chosen else "\u25a1"
        mark = mark if actions.can_sweep(item) else " "
        size = "" if item.bytes is None else human_size(item.bytes)
        return f"{mark} {item.kind:<9} {size:>9}  {item.action:<8} {item.name}"

    def about(self, item: Orphan) -> list[TextLine]:
        return [
            Fact("what", f"{item.kind} {item.name}"),
            Fact("repository", item.repo or "unknown"),
            Fact("why", item.reason),
            Fact("then", _WORDS.get(str(item.action), str(item.action))),
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
        if item is not None and actions.can_sweep(item):
            self._chosen ^= {self.items.index(item)}
            self.learn(self.items)
            self.action_move(1)

    def action_choose_all(self) -> None:
        able = {i for i, item in enumerate(self.items) if actions.can_sweep(item)}
        self._chosen = set() if self._chosen >= able else able
        self.learn(self.items)

    def action_apply(self) -> None:
        chosen = [self.items[i] for i in sorted(self._chosen)]
        if not chosen:
            self.notify("choose some with space first", markup=False)
            return
        facts: list[TextLine] = [Plain(self.line(item)[2:]) for item in chosen]
        facts.append(Plain("work in a worktree is saved before it goes", "label"))
        self.app.push_screen(
            Ask(f"Clear away {len(chosen)}?", facts, yes="clear away", no="leave"),
            lambda yes: self._apply(chosen) if yes else None,
        )

    def _apply(self, chosen: list[Orphan]) -> None:
        setting = self._setting
        self.app.jobs.start(  # type: ignore[attr-defined]
            "sweeping", lambda ctx: actions.sweep(ctx, setting, chosen), then=self._swept
        )

    def _swept(self, outcome: actions.Outcome) -> None:
        if outcome.names:
            self.notify(f"cleared away {len(outcome.names)}", markup=False)
        for failure in outcome.failures[:3]:
            self.notify(shown(failure), severity="error", markup=False)
        self._look()


_WORDS = {
    "remove": "it is removed",
    "salvage": "its work is saved first",
    "report": "it is only reported; end it yourself if you want",
    "keep": "it is kept",
}
