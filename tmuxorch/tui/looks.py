"""What the tabs tell of one agent; each looks at the world and returns lines."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system import processes, procfs
from tmuxorch.core import view
from tmuxorch.core.observation import Alive, Dead, Unknown
from tmuxorch.core.view import describe_exit
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import Agent, ProcessId, State, Status
from tmuxorch.service.context import Context
from tmuxorch.tui.highlight import Highlighter
from tmuxorch.tui.lines import Fact, Plain, TextLine, diff_lines
from tmuxorch.tui.snapshot import Row

DISK_LOOK_S = 0.5
DIFF_MAX_BYTES = 10_000_000


def diff_of(agent: Agent, colours: Highlighter | None = None) -> list[TextLine]:
    """Commits, staged, unstaged and untracked against the base."""
    if not os.path.isdir(agent.worktree):
        return [Plain(f"its worktree {agent.worktree} is not there", "bad")]
    data = git.diff(
        git.find_repo(agent.repo),
        agent.worktree,
        agent.base,
        agent.base_commit,
        admin=agent.admin,
        stat=False,
        color=False,
    )
    lines = diff_lines(data[:DIFF_MAX_BYTES].decode("utf-8", "surrogateescape"), colours)
    if len(data) > DIFF_MAX_BYTES:
        lines.append(Plain(f"and more; `tmuxorch diff {agent.name}` prints all of it", "label"))
    return lines or [Plain(f"nothing changed yet since {agent.base or agent.base_commit[:10]}")]


def saved_screen_of(ctx: Context, row: Row) -> list[TextLine]:
    """The last screen of an agent that has no window any more."""
    text = rundir.read_screen(ctx.run_dir(row.id))
    lines: list[TextLine] = [Plain(line) for line in (text or "").splitlines()]
    end = describe_end(row)
    return [*lines, Plain(""), Plain(end, "label")] if lines else [Plain(end, "label")]


def describe_end(row: Row) -> str:
    """A sentence for an agent without a window."""
    if row.state is State.LOST:
        return "its tmux server has gone; R brings it back in its worktree"
    if row.state is State.QUARANTINED:
        return "it could not be saved for certain, so nothing was deleted; y says why"
    if row.state is State.EXITED:
        how = "it was stopped" if row.agent.stopped else f"it ended with {describe_exit(row.exit)}"
        if row.status is Status.ENDED:
            how = "it has ended, and how is not known"
        return f"{how}; R starts it again"
    if row.state is State.CREATING:
        return "its window is being made"
    return "it has no window; R starts it again"


def timeline_of(ctx: Context, agent: Agent) -> list[TextLine]:
    """The decision log, newest last."""
    events = ctx.store.events(agent_id=agent.id, limit=1000)
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
        lines.append(Fact(time.strftime("%H:%M:%S", at), said, _event_style(event.what)))
        lines += [Fact("", line, "label") for line in rest if line.strip()]
    return lines or [Plain("nothing has happened yet")]


def _event_style(what: str) -> str:
    bad = ("crash", "fail", "quarantin", "lost", "gave up")
    if any(word in what for word in bad):
        return "bad"
    return "good" if what.startswith(("started", "restored", "merged")) else ""


def health_of(ctx: Context, row: Row) -> list[TextLine]:
    """Window, process and worktree, each as it is found now; what its tree of processes costs."""
    agent = row.agent
    members = processes.find_family(
        agent_id=agent.id,
        roots=tuple(p for p in (agent.shim, agent.process) if p is not None),
        worktree=None,
        since_ticks=None,
    )
    lines: list[TextLine] = [
        _window(ctx, agent),
        _process("process", agent.process),
        _process("shim", agent.shim),
        _worktree(agent),
        Plain(""),
        Fact("status", f"{row.status} ({row.state})"),
        Fact("kind", f"{agent.kind}, restarted {agent.restarts} times"),
        Fact("branch", f"{agent.branch}, from {agent.base or agent.base_commit[:10]}"),
        Fact("path", agent.worktree),
        *_times(agent),
        Plain(""),
    ]
    return lines + _costs(members) + _disk(agent.worktree)


def _window(ctx: Context, agent: Agent) -> TextLine:
    try:
        pane = ctx.tmux(agent.socket).find_pane(agent.id)
    except TmuxorchError as e:
        return Fact("window", f"unknown: {e.message}", "warn")
    if pane is None:
        return Fact("window", "gone", "bad" if agent.state is State.RUNNING else "label")
    others = pane.panes_in_window - 1
    beside = f", {others} other panes beside it" if others else ""
    place = pane.place
    return Fact("window", f"there: {place.session} {place.window} {place.pane}{beside}", "good")


def _process(label: str, process: ProcessId | None) -> TextLine:
    if process is None:
        return Fact(label, "none recorded", "label")
    match procfs.observe_process(process):
        case Alive():
            return Fact(label, f"alive: pid {process.pid}", "good")
        case Dead(how):
            return Fact(label, f"dead: {how}", "bad")
        case Unknown(why):
            return Fact(label, f"unknown: {why}", "warn")


def _worktree(agent: Agent) -> TextLine:
    if os.path.isdir(agent.worktree):
        return Fact("worktree", "there", "good")
    return Fact("worktree", "gone", "bad")


def _times(agent: Agent) -> list[TextLine]:
    now = time.time()
    moments = (("made", agent.created_at), ("started", agent.started_at), ("ended", agent.ended_at),
               ("active", agent.last_activity_at))  # fmt: skip
    return [Fact(word, f"{view.age(now - at)} ago") for word, at in moments if at is not None]


def _costs(members: Iterable[processes.Member]) -> list[TextLine]:
    import psutil

    memory, seconds, commands = 0, 0.0, []
    for member in members:
        try:
            process = psutil.Process(member.process.pid)
            used = process.memory_info().rss
            times = process.cpu_times()
        except psutil.Error:
            continue
        memory += used
        seconds += times.user + times.system
        commands.append(Fact("", f"{member.process.pid}  {_megabytes(used)}  {member.command}"))
    if not commands:
        return [Fact("processes", "none", "label")]
    return [
        Fact("processor", f"{seconds:.1f} s used"),
        Fact("memory", _megabytes(memory)),
        Fact("processes", str(len(commands))),
        *commands[:30],
    ]


def _disk(worktree: str) -> list[TextLine]:
    """The size of the worktree; a very large one is measured for half a second only."""
    total, files, deadline = 0, 0, time.monotonic() + DISK_LOOK_S
    todo = [worktree]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
                    files += 1
        if time.monotonic() > deadline:
            return [Fact("disk", f"more than {_megabytes(total)}")]
    return [Fact("disk", f"{_megabytes(total)} in {files} files")]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.2f} GB"
