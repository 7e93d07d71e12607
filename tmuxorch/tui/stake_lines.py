"""What is at stake in agents, as lines for the dialogs that ask about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxorch.model import Status
from tmuxorch.tui.lines import Plain, TextLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tmuxorch.tui.service_calls import StakeReport
    from tmuxorch.tui.snapshot import AgentRow


def merge_lines(row: AgentRow, stake: StakeReport) -> list[TextLine]:
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


def removal_lines(stakes: Sequence[StakeReport]) -> list[TextLine]:
    """What a removal would touch and what becomes of it: some lines for one, one line each for
    many."""
    if len(stakes) > 1:
        return [_short(stake) for stake in stakes]
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


def _short(stake: StakeReport) -> TextLine:
    said = stake.problem or "; ".join(stake.lines) or "no work at stake"
    alive = "running, " if stake.running else ""
    return Plain(f"{stake.name}: {alive}{said}", "strong" if stake.lines else "")
