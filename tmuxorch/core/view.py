"""An agent as people and scripts see it: the same words on every surface."""

from __future__ import annotations

from datetime import UTC, datetime

from tmuxorch.core.observation import Alive, Dead, Ended
from tmuxorch.model import Exit, State, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmuxorch.core.observation import Glance, Unknown
    from tmuxorch.model import Agent, HistoryEntry, Question

# Those that end programs and have the same number everywhere.
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
}


# What the record of an ended agent may say.
_ENDINGS = frozenset({Status.DONE, Status.STOPPED, Status.CRASHED, Status.ENDED})


def state_and_status(agent: Agent, seen: Glance) -> tuple[State, Status]:
    """What to show for a record and a fresh glance at it: the one answer of every surface.

    The record may be a moment old: an agent whose process is known to be dead is shown as
    ended even before the watcher has written so.
    """
    if agent.damage:
        return agent.state, Status.UNKNOWN
    if agent.state is State.CREATING:
        return agent.state, Status.STARTING
    if agent.state is State.EXITED:
        known = agent.status in _ENDINGS
        return agent.state, agent.status if known else ended_status(agent, agent.run.exit)
    if agent.state is not State.RUNNING:
        return agent.state, Status(agent.state.value)
    if seen.process is None:
        return agent.state, Status.STARTING
    if isinstance(seen.process, Dead):
        return _dead(agent, seen)
    if isinstance(seen.process, Alive):
        return agent.state, agent.status
    return agent.state, Status.UNKNOWN


def _dead(agent: Agent, seen: Glance) -> tuple[State, Status]:
    """How a process ended is its own doing only if its shim and tmux server have outlived it."""
    if agent.run.stopped:
        return State.EXITED, Status.STOPPED
    if isinstance(seen.server, Dead):
        return State.LOST, Status.LOST
    if isinstance(seen.shim, Dead) or not isinstance(seen.ended, Ended):
        return State.EXITED, Status.ENDED
    return State.EXITED, ended_status(agent, seen.ended.exit)


def ended_status(agent: Agent, exit_: Exit | None) -> Status:
    """`stopped` for an end that was asked for, `done` for a clean one, `crashed` for others."""
    if agent.run.stopped:
        return Status.STOPPED
    return Status.DONE if exit_ is not None and exit_.code == 0 else Status.CRASHED


def exit_of(ended: Ended | Unknown | None) -> Exit | None:
    """The exit that the shim told of, if it told of one."""
    return ended.exit if isinstance(ended, Ended) else None


def agent_json(agent: Agent, seen: Glance) -> dict[str, Any]:
    """The object that `ls`, `show` and `new` print."""
    state, status = state_and_status(agent, seen)
    place = agent.run.place
    alive = None
    if isinstance(seen.process, Alive):
        alive = True
    elif isinstance(seen.process, Dead):
        alive = False
    return {
        "id": agent.task.id,
        "name": agent.task.name,
        "repo": agent.task.repo,
        "task": agent.task.text,
        "agent": agent.task.agent,
        "kind": agent.task.kind,
        "state": state,
        "status": status,
        # Of one that the watcher has not written down yet nobody knows it.
        "status_since": iso(agent.status_since) if status is agent.status else None,
        "seen": None,
        "merged": None,
        "usage": None,
        "question": question_json(agent.run.question) if status is Status.WAITING else None,
        "branch": agent.task.branch,
        "base": agent.task.base,
        "base_commit": agent.task.base_commit,
        "worktree": agent.task.worktree,
        "tmux": {
            "socket": agent.run.socket,
            "session": place.session if place else None,
            "window": place.window if place else None,
            "pane": place.pane if place else None,
        },
        "process": {
            "pid": agent.run.process.pid if agent.run.process else None,
            "shim_pid": agent.run.shim.pid if agent.run.shim else None,
            "alive": alive,
        },
        "exit": exit_json(agent.run.exit or exit_of(seen.ended)),
        "restarts": agent.run.number,
        "created_at": iso(agent.task.created_at),
        "started_at": iso(agent.run.started_at),
        "ended_at": iso(agent.run.ended_at),
        "last_activity_at": iso(agent.run.last_activity_at),
    }


def history_json(entry: HistoryEntry) -> dict[str, Any]:
    """The object that `history` prints."""
    return {
        "id": entry.task.id,
        "name": entry.task.name,
        "repo": entry.task.repo,
        "task": entry.task.text,
        "agent": entry.task.agent,
        "branch": entry.task.branch,
        "base": entry.task.base,
        "base_commit": entry.task.base_commit,
        "head_commit": entry.head_commit,
        "reason": entry.reason,
        "exit": exit_json(entry.exit),
        "created_at": iso(entry.task.created_at),
        "removed_at": iso(entry.removed_at),
        "duration_s": round(entry.duration_s, 3),
        "commits": entry.commits,
        "files_changed": entry.files_changed,
        "insertions": entry.insertions,
        "deletions": entry.deletions,
        "salvage_ref": entry.salvage_ref,
        "branch_kept": entry.branch_kept,
        "restored_at": iso(entry.restored_at),
        "last_screen": entry.last_screen,
    }


def question_json(question: Question | None) -> dict[str, Any] | None:
    if question is None:
        return None
    choices = [{"key": choice.key, "text": choice.text} for choice in question.choices]
    return {"text": question.text, "choices": choices}


def describe_question(question: Question | None) -> str:
    """The question in lines for a person."""
    if question is None:
        return "  (its question cannot be read)"
    lines = question.text.splitlines()
    lines += [f"{choice.key}. {choice.text}" for choice in question.choices]
    return "\n".join(f"  {line}" for line in lines)


def exit_json(exit_: Exit | None) -> dict[str, int | None] | None:
    return None if exit_ is None else {"code": exit_.code, "signal": exit_.signal}


def describe_exit(exit_: Exit | None) -> str:
    """`exit code 3` or `SIGKILL`, for sentences."""
    if exit_ is None:
        return "an unknown exit status"
    if exit_.signal is not None:
        return _SIGNALS.get(exit_.signal, f"signal {exit_.signal}")
    return f"exit code {exit_.code}"


def iso(at: float | None) -> str | None:
    """ISO 8601 in UTC, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age(seconds: float) -> str:
    """`45s`, `12m`, `3h`, `5d`."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
