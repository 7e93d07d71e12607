"""What an agent says of itself, through the hooks of its own program."""

from __future__ import annotations

from tmuxorch.adapters.store.records import open_store_for_reading
from tmuxorch.errors import NotRunning, UsageError
from tmuxorch.model import Status

REPORTABLE = (Status.WORKING, Status.WAITING, Status.IDLE)


def parse_status(word: str) -> Status:
    """The status that an agent may report by this word."""
    if word not in REPORTABLE:
        raise UsageError(f"{word!r} is not a status: report {', '.join(REPORTABLE[:-1])} or idle")
    return Status(word)


def report(state_dir: str, agent_id: str, status: Status, *, at: float) -> None:
    """Note that the agent is working, waits for an answer or has nothing to do."""
    store = open_store_for_reading(state_dir)
    try:
        if store is None or not store.report(agent_id, status, at):
            raise NotRunning(f"no running agent has the id {agent_id!r}; nothing was noted")
    finally:
        if store is not None:
            store.close()
