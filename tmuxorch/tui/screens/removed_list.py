"""Removed workers: search them, see their last screen, bring one back."""

from __future__ import annotations

import os
import time
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList

from tmuxorch.core import view
from tmuxorch.core.literal import first_line
from tmuxorch.core.view import describe_exit
from tmuxorch.model import HistoryEntry
from tmuxorch.tui.jobs import Jobs
from tmuxorch.tui.lines import Fact, Plain, TextLine
from tmuxorch.tui.screens.choice_list import ChoiceList

SHOWN = 500


class RemovedList(ChoiceList[HistoryEntry]):
    """Dismissed with the entry to restore, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,r", "restore", "restore"),
        Binding("slash", "search", "search"),
    ]

    def __init__(self, jobs: Jobs) -> None:
        super().__init__("History: removed workers, newest first")
        self._jobs = jobs
        self._asked = ""

    def on_mount(self) -> None:
        self._ask("")

    def _ask(self, words: str) -> None:
        self._asked = words
        self._jobs.start(
            "reading the history",
            lambda ctx: (words, ctx.store.history(search=words, limit=SHOWN)),
            then=self._answer,
        )

    def _answer(self, found: tuple[str, list[HistoryEntry]]) -> None:
        words, entries = found
        if words == self._asked:
            self.learn(entries)

    def line(self, item: HistoryEntry) -> str:
        changes = "" if item.files_changed is None else f"+{item.insertions} \u2212{item.deletions}"
        ago = view.age(time.time() - item.removed_at)
        task = item.task
        return (f"{ago:>4}  {item.reason:<13}  {task.name:<24.24}  {changes:>12}  "
                f"{os.path.basename(task.repo):<14.14}  {first_line(task.text)}")  # fmt: skip

    def about(self, item: HistoryEntry) -> list[TextLine]:
        lines: list[TextLine] = [Fact("task", line) for line in item.task.text.split("\n")[:6]]
        if item.exit is not None:
            lines.append(Fact("ended with", describe_exit(item.exit)))
        lines.append(Fact("branch", f"{item.task.branch}{' (kept)' if item.branch_kept else ''}"))
        if item.salvage_ref or item.archive:
            lines.append(Fact("saved", item.salvage_ref or "ignored files", "good"))
        if item.restored_at is not None:
            lines.append(Fact("restored", f"{view.age(time.time() - item.restored_at)} ago"))
        if item.last_screen:
            lines += [Plain(""), Plain("Its last screen:", "label")]
            lines += [Plain(line) for line in item.last_screen.split("\n")[-40:]]
        return lines

    def empty(self) -> list[TextLine]:
        words = "no removed worker fits" if self._asked else "no worker has been removed yet"
        return [Plain(words, "label")]

    def offered(self) -> list[tuple[str, str, str]]:
        return [
            ("Enter", "restore", "restore"),
            ("/", "search", "search"),
            ("Esc", "back", "leave"),
        ]

    def on_option_list_option_selected(self) -> None:
        self.action_restore()

    def action_restore(self) -> None:
        if self.highlighted is not None:
            self.dismiss(self.highlighted)

    def action_search(self) -> None:
        field = self.query_one("#search", Input)
        field.display = True
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._ask(event.value)

    def on_input_submitted(self) -> None:
        self.query_one(OptionList).focus()
