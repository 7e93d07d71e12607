"""One look at an agent, the same for every surface.

`tmuxorch ls` imports this module: nothing here that it has not loaded already.
"""

from __future__ import annotations

from tmuxorch.adapters.system import procfs
from tmuxorch.core.observation import Dead, Glance, Unknown
from tmuxorch.model import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tmuxorch.core.observation import Ended, ProcessFact, Started
    from tmuxorch.model import Agent, ProcessId

    Word = TypeVar("Word", Started, Ended)


def look(state_dir: str, agent: Agent) -> Glance:
    """A fresh look at a recorded process and, if it is dead, at how it ended."""
    if agent.state is not State.RUNNING or agent.run.process is None or agent.damage:
        return Glance()
    process = procfs.observe_process(agent.run.process)
    if not isinstance(process, Dead):
        return Glance(process)
    ended = read_exit(state_dir, agent)
    # After its word was read: a shim that is there now had no reason to go when it wrote it.
    server = agent.run.place.server if agent.run.place else None
    return Glance(process, _fact(agent.run.shim), _fact(server), ended)


def read_exit(state_dir: str, agent: Agent) -> Ended | Unknown | None:
    """The shim's word about the end of the present run."""
    from tmuxorch.adapters.store import rundir

    directory = rundir.run_dir(state_dir, agent.task.id)
    return _read(directory, "exit", lambda: rundir.read_exit(directory, run=agent.run.number))


def read_started(state_dir: str, agent: Agent) -> Started | Unknown | None:
    """The shim's word about the start of the present run."""
    from tmuxorch.adapters.store import rundir

    directory = rundir.run_dir(state_dir, agent.task.id)
    return _read(directory, "started", lambda: rundir.read_started(directory, run=agent.run.number))


def _read(directory: str, name: str, read: Callable[[], Word | None]) -> Word | Unknown | None:
    """One file of the run directory; whatever stands in its place fails for this agent alone."""
    try:
        return read()
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, KeyError) as error:
        why = f"{type(error).__name__}: {error}"
    return Unknown(f"{directory}/{name} cannot be read: {why[:200]}")


def _fact(process: ProcessId | None) -> ProcessFact | None:
    return None if process is None else procfs.observe_process(process)
