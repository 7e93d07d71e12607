"""`tmuxorch ls`: the live agents, read from the store and from /proc, nothing else."""

from __future__ import annotations

import os
import sys
import time

from tmuxorch import paths
from tmuxorch.cli import output, paint
from tmuxorch.core import view
from tmuxorch.core.literal import literal
from tmuxorch.service.listing import Listing
from tmuxorch.service.repositories import find_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmuxorch.core.observation import Glance
    from tmuxorch.model import Agent


def list_agents(*, as_json: bool, everywhere: bool, repo: str | None = None) -> int:
    """Print the agents of this repository, or of all outside one or with `everywhere`."""
    root = repo
    if root is None and not everywhere:
        root = repository_here()
    listing = Listing.open(paths.state_dir(os.environ))
    agents = listing.agents(repo=root)
    seen = [listing.look(agent) for agent in agents]
    if as_json:
        import json

        # An agent a line: json indents in Python, and encodes a plain line in C.
        rows = [json.dumps(view.agent_json(a, s)) for a, s in zip(agents, seen, strict=True)]
        sys.stdout.write("[" + ",\n ".join(rows) + "]\n")
    else:
        output.paint(_table(agents, seen, root))
        if agents and not listing.is_watched():
            sys.stderr.write("no watcher runs, so this may be old; `tmuxorch watch` starts one\n")
    return 0


def repository_here() -> str | None:
    """The root of the repository around the current directory, if there is one."""
    return find_root(os.getcwd())


def _table(agents: list[Agent], seen: list[Glance], root: str | None) -> str:
    if not agents:
        where = f" in {literal(root)}" if root else ""
        return f'no agents{where}; make one with: tmuxorch new "what it shall do"\n'
    now = time.time()
    rows = [("", "NAME", "AGENT", "AGE", "BRANCH", "TASK")]
    if root is None:
        rows = [("", "NAME", "AGENT", "AGE", "REPOSITORY", "TASK")]
    for agent, glance in zip(agents, seen, strict=True):
        _, status = view.state_and_status(agent, glance)
        place = agent.task.branch if root else os.path.basename(agent.task.repo)
        task = agent.task.text.partition("\n")[0]
        rows.append(
            (
                status,
                agent.task.name,
                agent.task.agent,
                view.age(now - agent.task.created_at),
                place,
                task,
            )
        )
    return paint.table(rows, colours=output.wants_colour(sys.stdout))
