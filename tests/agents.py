"""Records and facts for tests of what is decided."""

from __future__ import annotations

from typing import Any

from tmuxorch.adapters.store.rows import agent_of, values_of
from tmuxorch.core.observation import (
    Alive,
    Dead,
    Ended,
    ServerGone,
    Started,
    Unknown,
    WindowGone,
    WindowMissed,
    WindowSeen,
)
from tmuxorch.model import (
    Agent,
    AgentId,
    Exit,
    Kind,
    PaneId,
    Place,
    ProcessId,
    State,
    Status,
    WindowId,
)

SERVER = ProcessId("boot", 1, 10, 100, 1000)
PROCESS = ProcessId("boot", 1, 20, 200, 2000)
SHIM = ProcessId("boot", 1, 30, 300, 3000)
PLACE = Place("/tmp/s", SERVER, "tmuxorch-r", WindowId("@1"), PaneId("%1"))

ALIVE = Alive(PROCESS)
DEAD = Dead("no such process")
UNKNOWN = Unknown("nobody could look")
SEEN = WindowSeen(PLACE, held=True, others=0, activity_at=900.0)
SPLIT = WindowSeen(PLACE, held=True, others=1, activity_at=900.0)
FOREIGN = WindowSeen(PLACE, held=False, others=0, activity_at=900.0)
MISSED = WindowMissed()
GONE = WindowGone()
SERVER_GONE = ServerGone("no such process")
STARTED = Started(PROCESS, SHIM, 950.0)
ENDED_WELL = Ended(Exit(0, None), None, 990.0)
ENDED_BADLY = Ended(Exit(None, 9), None, 990.0)


def agent(state: State, **changes: Any) -> Agent:
    """A worker that has been in this state for a while."""
    values: dict[str, Any] = {
        "id": AgentId("0123456789ab"),
        "name": "w",
        "repo": "/r",
        "task": "do it",
        "agent": "claude",
        "kind": Kind.WORKER,
        "state": state,
        "status": Status.WORKING,
        "branch": "tmuxorch/w",
        "branch_made": True,
        "base": "main",
        "base_commit": "c" * 40,
        "worktree": "/w",
        "command": (),
        "copied": (),
        "conversation": None,
        "socket": PLACE.socket,
        "place": PLACE,
        "process": PROCESS,
        "shim": SHIM,
        "owner": None,
        "reason": None,
        "keep_branch": False,
        "exit": None,
        "stopped": False,
        "restarts": 0,
        "created_at": 800.0,
        "started_at": 801.0,
        "ended_at": None,
        "last_activity_at": 900.0,
        **changes,
    }
    return agent_of(**values)


def changed(known: Agent, **changes: Any) -> Agent:
    """The agent with other values, whichever part of it they belong to."""
    return agent_of(**{**values_of(known), **changes})
