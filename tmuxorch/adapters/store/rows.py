"""Agents and history entries as rows of the store, and back."""

from __future__ import annotations

import json

from tmuxorch.model import (
    Agent,
    AgentId,
    Choice,
    Exit,
    HistoryEntry,
    Kind,
    PaneId,
    Place,
    ProcessId,
    Question,
    Reason,
    Run,
    State,
    Status,
    Step,
    Task,
    WindowId,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any


# A column that is called otherwise than the field it holds.
_COLUMN = {"text": "task", "number": "restarts"}
_TASK = tuple((_COLUMN.get(name, name), name) for name in Task.__match_args__)
_RUN = tuple((_COLUMN.get(name, name), name) for name in Run.__match_args__)


def insertion(table: str, columns: dict[str, Any]) -> str:
    """The statement that adds a row of these columns."""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def as_text(value: ProcessId | None) -> str | None:
    """An identity as it stands in a column."""
    return None if value is None else str(value)


def values_of(agent: Agent) -> dict[str, Any]:
    """All values of an agent side by side, by the names of their columns."""
    values = {**_spread(agent.task, _TASK), **_spread(agent.run, _RUN)}
    values.update((name, getattr(agent, name)) for name in agent.__match_args__[2:])
    return values


def columns_of_agent(agent: Agent) -> dict[str, Any]:
    return as_columns(values_of(agent))


def columns_of_entry(entry: HistoryEntry) -> dict[str, Any]:
    values = _spread(entry.task, _TASK)
    values.update((name, getattr(entry, name)) for name in entry.__match_args__[1:])
    return as_columns(values)


def agent_of(**values: Any) -> Agent:
    """The agent of values by the names of their columns; those of its task and run are taken."""
    task, run = Task(**_take(values, _TASK)), Run(**_take(values, _RUN))
    return Agent(task, run, **values)


def entry_of(**values: Any) -> HistoryEntry:
    return HistoryEntry(Task(**_take(values, _TASK)), **values)


def _spread(value: Task | Run, names: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return {column: getattr(value, name) for column, name in names}


def _take(values: dict[str, Any], names: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return {name: values.pop(column) for column, name in names if column in values}


def as_columns(values: dict[str, Any]) -> dict[str, Any]:
    """Field values as columns: nested values are spread, identities are text."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name == "place":
            place: Place | None = value
            found["server"] = None if place is None else str(place.server)
            for part in ("session", "window", "pane"):
                found[part] = None if place is None else getattr(place, part)
            if place is not None:
                found["socket"] = place.socket
        elif name == "exit":
            found["exit_code"] = None if value is None else value.code
            found["exit_signal"] = None if value is None else value.signal
        elif name in ("process", "shim", "owner"):
            found[name] = as_text(value)
        elif name == "step":
            found[name] = str(value)
        elif name == "question":
            found[name] = None if value is None else json.dumps(_question_parts(value))
        elif name in ("command", "copied", "deaths"):
            found[name] = json.dumps(value)
        elif name != "damage":  # a fact about a row, not a part of it
            found[name] = value
    return found


def _tuple(json_text: str) -> tuple[Any, ...]:
    if json_text == "[]":
        return ()
    found = json.loads(json_text)
    if not isinstance(found, list):
        raise TypeError(f"{json_text[:40]!r} is no list")
    return tuple(found)


def _question_parts(question: Question) -> list[Any]:
    return [question.text, [[choice.key, choice.text] for choice in question.choices]]


def _question(json_text: str | None) -> Question | None:
    if json_text is None:
        return None
    text, choices = json.loads(json_text)
    return Question(str(text), tuple(Choice(str(key), str(word)) for key, word in choices))


def _process(identity: str | None) -> ProcessId | None:
    return None if identity is None else ProcessId.parse(identity)


def _exit(row: sqlite3.Row) -> Exit | None:
    code, signal = row["exit_code"], row["exit_signal"]
    return None if code is None and signal is None else Exit(code, signal)


def read_agent(row: sqlite3.Row) -> Agent:
    """The agent of a row; where a value cannot be read, what is left of it and why.

    One such row must not hide the others. It is shown as quarantined: nothing is done to an
    agent of which nobody knows what it is.
    """
    try:
        return _read_agent(row)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return _damaged(row, f"{type(error).__name__}: {str(error)[:200]}")


def _damaged(row: sqlite3.Row, why: str) -> Agent:
    def text(name: str) -> str:
        return str(row[name] or "")

    names = ("name", "repo", "task", "agent", "branch", "base", "base_commit", "worktree", "socket")
    return agent_of(
        **{name: text(name) for name in names},
        id=AgentId(text("id")),
        kind=Kind.WORKER,
        state=State.QUARANTINED,
        status=Status.UNKNOWN,
        branch_made=False,
        created_at=row["created_at"] or 0.0,
        damage=why,
    )


def _read_agent(row: sqlite3.Row) -> Agent:
    values: dict[str, Any] = dict(row)
    server, session, window, pane = (values.pop(k) for k in ("server", "session", "window", "pane"))
    del values["exit_code"], values["exit_signal"]
    place = None
    if server is not None:
        if None in (session, window, pane):
            raise ValueError("half a place")
        place = Place(
            values["socket"], ProcessId.parse(server), session, WindowId(window), PaneId(pane)
        )
    values.update(
        id=AgentId(values["id"]),
        kind=Kind(values["kind"]),
        state=State(values["state"]),
        status=Status(values["status"]),
        reason=None if values["reason"] is None else Reason(values["reason"]),
        reported=None if values["reported"] is None else Status(values["reported"]),
        branch_made=bool(values["branch_made"]),
        keep_branch=bool(values["keep_branch"]),
        stopped=bool(values["stopped"]),
        command=_tuple(values["command"]),
        copied=_tuple(values["copied"]),
        deaths=_tuple(values["deaths"]),
        process=_process(values["process"]),
        shim=_process(values["shim"]),
        owner=_process(values["owner"]),
        exit=_exit(row),
        question=_question(values["question"]),
        place=place,
        step=Step.parse(values["step"]),
    )
    return agent_of(**values)


def read_entry(row: sqlite3.Row) -> HistoryEntry:
    values: dict[str, Any] = dict(row)
    del values["seq"], values["exit_code"], values["exit_signal"]
    values.update(
        id=AgentId(values["id"]),
        kind=Kind(values["kind"]),
        reason=Reason(values["reason"]),
        command=tuple(json.loads(values["command"])),
        copied=tuple(json.loads(values["copied"])),
        branch_made=bool(values["branch_made"]),
        branch_kept=bool(values["branch_kept"]),
        exit=_exit(row),
    )
    return entry_of(**values)
