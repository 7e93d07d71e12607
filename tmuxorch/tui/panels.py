"""What the tabs tell of one agent; each looks at the world and returns lines."""

from __future__ import annotations

import os
import time

from tmuxorch.core import view
from tmuxorch.core.view import describe_exit
from tmuxorch.model import Agent, State, Status
from tmuxorch.service.context import Context
from tmuxorch.service.workers import inspection
from tmuxorch.service.workers.inspection import Presence, PresenceFact
from tmuxorch.tui.highlight import Highlighter
from tmuxorch.tui.lines import Fact, Plain, TextLine, diff_lines
from tmuxorch.tui.snapshot import AgentRow

PROCESSES_MAX = 30
DIFF_MAX_BYTES = 10_000_000


def diff_of(agent: Agent, colours: Highlighter | None = None) -> list[TextLine]:
    """Commits, staged, unstaged and untracked against the base."""
    if not os.path.isdir(agent.task.worktree):
        return [Plain(f"its worktree {agent.task.worktree} is not there", "bad")]
    data = inspection.read_diff(agent)
    lines = diff_lines(data[:DIFF_MAX_BYTES].decode("utf-8", "surrogateescape"), colours)
    if len(data) > DIFF_MAX_BYTES:
        lines.append(
            Plain(f"and more; `tmuxorch diff {agent.task.name}` prints all of it", "label")
        )
    return lines or [
        Plain(f"nothing changed yet since {agent.task.base or agent.task.base_commit[:10]}")
    ]


def saved_screen_of(ctx: Context, row: AgentRow) -> list[TextLine]:
    """The last screen of an agent that has no window any more."""
    text = inspection.read_saved_screen(ctx, row.agent)
    lines: list[TextLine] = [Plain(line) for line in (text or "").splitlines()]
    how, way_on = describe_end(row)
    end = Plain(f"{how}; {way_on}" if way_on else how, "label")
    return [*lines, Plain(""), end] if lines else [end]


def describe_end(row: AgentRow) -> tuple[str, str]:
    """Why an agent has no window, and what a person may do about that."""
    if row.state is State.LOST:
        return "its tmux server has gone", "R brings it back in its worktree"
    if row.state is State.QUARANTINED:
        return "it could not be saved for certain, so nothing was deleted", "y says why"
    if row.state is State.EXITED:
        how = (
            "it was stopped"
            if row.agent.run.stopped
            else f"it ended with {describe_exit(row.exit)}"
        )
        if row.status is Status.ENDED:
            how = "it has ended, and how is not known"
        return how, "R starts it again"
    if row.state is State.CREATING:
        return "its window is being made", ""
    return "it has no window", "R starts it again"


# Of the events that a person looks for; the others are plain.
_EVENT_STYLES = {
    **dict.fromkeys(("started", "restored", "merged"), "good"),
    **dict.fromkeys(
        (
            *("creation failed", "restart failed", "resume failed", "restore failed"),
            *("lost", "seen lost", "seen crashed", "quarantined", "seen quarantined"),
        ),
        "bad",
    ),
}


def timeline_of(ctx: Context, agent: Agent) -> list[TextLine]:
    """The decision log, newest last."""
    events = ctx.store.events(agent_id=agent.task.id, limit=1000)
    lines: list[TextLine] = []
    day = ""
    for event in events:
        at = time.localtime(event.at)
        if (today := time.strftime("%A, %d %B", at)) != day:
            lines += [Plain("")] if lines else []
            lines.append(Plain(today, "strong"))
            day = today
        first, *rest = event.why.split("\n") if event.why else [""]
        said = f"{event.what}: {first}" if first else event.what
        lines.append(Fact(time.strftime("%H:%M:%S", at), said, _EVENT_STYLES.get(event.what, "")))
        lines += [Fact("", line, "label") for line in rest if line.strip()]
    return lines or [Plain("nothing has happened yet")]


def health_of(ctx: Context, row: AgentRow) -> list[TextLine]:
    """Window, process and worktree, each as it is found now; what its tree of processes costs."""
    agent = row.agent
    there = inspection.observe_health(ctx, agent)
    runs = agent.state is State.RUNNING
    lines: list[TextLine] = [
        _fact("window", there.window, gone_style="bad" if runs else "label"),
        _fact("process", there.process, there="alive", gone="dead"),
        _fact("shim", there.shim, there="alive", gone="dead"),
        _fact("worktree", there.worktree),
        Plain(""),
        Fact("status", f"{row.status} ({row.state})"),
        Fact("kind", f"{agent.task.kind}, restarted {agent.run.number} times"),
        Fact(
            "branch", f"{agent.task.branch}, from {agent.task.base or agent.task.base_commit[:10]}"
        ),
        Fact("path", agent.task.worktree),
        *_times(agent),
        Plain(""),
    ]
    return lines + _costs(agent) + [_disk(agent.task.worktree)]


def _fact(
    label: str,
    found: PresenceFact,
    *,
    there: str = "there",
    gone: str = "gone",
    gone_style: str = "bad",
) -> TextLine:
    word, style = {
        Presence.THERE: (there, "good"),
        Presence.GONE: (gone, gone_style),
        Presence.UNKNOWN: ("unknown", "warn"),
        Presence.UNRECORDED: ("none recorded", "label"),
    }[found.presence]
    return Fact(label, f"{word}: {found.detail}" if found.detail else word, style)


def _times(agent: Agent) -> list[TextLine]:
    now = time.time()
    run = agent.run
    moments = (("made", agent.task.created_at), ("started", run.started_at),
               ("ended", run.ended_at), ("active", run.last_activity_at))  # fmt: skip
    return [Fact(word, f"{view.age(now - at)} ago") for word, at in moments if at is not None]


def _costs(agent: Agent) -> list[TextLine]:
    costs = list(inspection.measure_costs(agent))
    if not costs:
        return [Fact("processes", "none", "label")]
    return [
        Fact("processor", f"{sum(cost.processor_s for cost in costs):.1f} s used"),
        Fact("memory", _megabytes(sum(cost.memory_bytes for cost in costs))),
        Fact("processes", str(len(costs))),
        *(
            Fact("", f"{cost.pid}  {_megabytes(cost.memory_bytes)}  {cost.command}")
            for cost in costs[:PROCESSES_MAX]
        ),
    ]


def _disk(worktree: str) -> TextLine:
    """The size of the worktree, as far as it could be counted in a moment."""
    used = inspection.measure_disk(worktree)
    if not used.complete:
        return Fact("disk", f"more than {_megabytes(used.bytes)}")
    return Fact("disk", f"{_megabytes(used.bytes)} in {used.files} files")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.2f} GB"
