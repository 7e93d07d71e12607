"""What every service needs, handed in once; tests hand in their own clock and faults."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tmuxorch import paths
from tmuxorch.adapters.git import call
from tmuxorch.adapters.store import records, rundir
from tmuxorch.adapters.tmux import server
from tmuxorch.adapters.tmux.server import Tmux
from tmuxorch.service.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tmuxorch.core.progress import Phase
    from tmuxorch.model import Agent, AgentId


def _nothing(*_: object) -> None:
    return None


@dataclass
class Context:
    """The world as one command sees it.

    `narrate` gets a line for a person when something slow begins, `progress` the phase that an
    agent is in; `checkpoint` is called with a step's name after each step of a saga, so that
    tests can fail there.
    """

    store: records.Store
    settings: Settings
    state_dir: str
    worktrees_dir: str
    socket: str
    environ: Mapping[str, str]
    tmux_timeout_s: float = 10.0
    clock: Callable[[], float] = time.time
    narrate: Callable[[str], None] = _nothing
    progress: Callable[[AgentId, Phase], None] = _nothing
    checkpoint: Callable[[str], None] = _nothing
    _tmux: dict[str, Tmux] = field(default_factory=dict)

    def tmux(self, socket: str | None = None) -> Tmux:
        """The tmux server of that socket (this command's own by default)."""
        path = socket or self.socket
        if path not in self._tmux:
            self._tmux[path] = Tmux(path, timeout_s=self.tmux_timeout_s)
        return self._tmux[path]

    def check_tools(self) -> None:
        """Refuse a missing or old tmux or git; each program is asked once, then remembered."""
        self._check_once("tmux", server.find_program(), server.check_version)
        self._check_once("git", call.find_program(), lambda _: call.check_version())

    def _check_once(self, name: str, program: str, check: Callable[[str], object]) -> None:
        status = os.stat(program)
        key = f"{name}:{program}:{status.st_mtime_ns}:{status.st_size}"
        if self.store.meta(name) != key:
            check(program)
            self.store.set_meta(name, key)

    def enter(self, agent: Agent, phase: Phase) -> None:
        """Tell that this is being done to the agent from now on."""
        self.narrate(phase.describe(agent.task.name))
        self.progress(agent.task.id, phase)

    def run_dir(self, agent_id: AgentId) -> str:
        return rundir.run_dir(self.state_dir, agent_id)

    def make_room(self, worktree: str) -> None:
        """Have the directory that the worktree goes into, with nobody but us in it."""
        root = self.worktrees_dir
        if os.path.basename(os.path.dirname(root)) == "tmuxorch":
            paths.ensure_private(os.path.dirname(root))
        paths.ensure_private(root)
        paths.ensure_private(os.path.dirname(worktree))

    def lock_note(self, repo_root: str) -> str:
        """Where the holder of a repository's lock notes itself; see `locks.noted`."""
        digest = hashlib.sha256(os.fsencode(repo_root)).hexdigest()[:16]
        return os.path.join(self.state_dir, "locks", f"repo-{digest}.busy")

    def lock_reason(self, agent: Agent) -> str:
        """The mark by which git's own list says whose worktree it is."""
        return f"tmuxorch:{self.store.id}:{agent.task.id}"


def open_context(
    environ: Mapping[str, str],
    *,
    socket: str,
    tmux_timeout_s: float = 10.0,
    narrate: Callable[[str], None] = _nothing,
    progress: Callable[[AgentId, Phase], None] = _nothing,
) -> Context:
    """Open the store of this environment, making its directory on first use."""
    state_dir = paths.state_dir(environ)
    paths.ensure_private(state_dir)
    store = records.open_store(state_dir)
    return Context(
        store=store,
        settings=Settings(paths.config_path(environ), store, narrate),
        state_dir=state_dir,
        worktrees_dir=paths.worktrees_dir(environ),
        socket=socket,
        environ=environ,
        tmux_timeout_s=tmux_timeout_s,
        narrate=narrate,
        progress=progress,
    )
