"""One look at an agent, the same for every surface.

`tmuxorch ls` imports this module: nothing here that it has not loaded already.
"""

from __future__ import annotations

from tmuxorch.adapters import procfs
from tmuxorch.core.observation import Dead
from tmuxorch.model import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmuxorch.core.observation import ProcessFact
    from tmuxorch.model import Agent, Exit


def look(state_dir: str, agent: Agent) -> tuple[ProcessFact | None, Exit | None]:
    """A fresh look at a recorded process and, if it is dead, at how it ended."""
    if agent.process is None or agent.state is not State.RUNNING:
        return None, agent.exit
    fact = procfs.observe_process(agent.process)
    if not isinstance(fact, Dead):
        return fact, None
    from tmuxorch.adapters import rundir

    ended = rundir.read_exit(rundir.run_dir(state_dir, agent.id), run=agent.restarts)
    return fact, ended.exit if ended else None
