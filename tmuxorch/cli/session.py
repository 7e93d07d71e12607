"""What the verbs share: the options of this call, and the things they lead to."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tmuxorch import paths
from tmuxorch.cli import ls
from tmuxorch.core import naming, view
from tmuxorch.core.literal import literal
from tmuxorch.errors import AmbiguousName, UnknownName
from tmuxorch.service.context import Context, open_context
from tmuxorch.service.health.liveness import look
from tmuxorch.service.removal import history
from tmuxorch.service.repositories import Repo, find_repository

if TYPE_CHECKING:
    from tmuxorch.config import Config
    from tmuxorch.model import Agent, HistoryEntry


@dataclass
class Session:
    """One call of the command line."""

    socket_name: str | None = None
    socket_path: str | None = None
    repo_path: str | None = None
    quiet: bool = False
    as_json: bool = False

    @cached_property
    def ctx(self) -> Context:
        socket = paths.socket_path(os.environ, self.socket_name, self.socket_path)
        return open_context(os.environ, socket=socket, narrate=self.narrate)

    @property
    def cwd(self) -> str:
        return self.repo_path or os.getcwd()

    def repo(self) -> Repo:
        """The repository of this call, or `NoRepository`."""
        return find_repository(self.cwd)

    def repo_root(self) -> str | None:
        """The repository's root if the call is made in one."""
        if self.repo_path is not None:
            return self.repo().root
        return ls.repository_here()

    def config(self, repo_root: str | None = None) -> Config:
        """The settings in force; sets how long tmux may take as well."""
        settings = self.ctx.settings
        config = settings.own() if repo_root is None else settings.of(repo_root)
        self.ctx.tmux_timeout_s = config.tmux.timeout_s
        return config

    def find(self, name: str) -> Agent:
        """The agent by name, id or unique prefix; this repository's own go first."""
        self.config()  # what is done with the agent may ask tmux, which has its time-out
        here = self.repo_root()
        agents = self.ctx.store.agents()
        scopes = [[a for a in agents if a.task.repo == here], agents] if here else [agents]
        for scope in scopes:
            found = naming.match(name, [(a.task.name, a.task.id) for a in scope])
            if len(found) == 1:
                return next(a for a in scope if a.task.id == found[0][1])
            if found:
                known = {str(a.task.id): a for a in scope}
                listed = ", ".join(
                    f"{n} ({i}, {os.path.basename(known[i].task.repo)})" for n, i in found
                )
                raise AmbiguousName(
                    f"{name[:60]!r} fits {len(found)} agents: {listed}; say more of it"
                )
        raise UnknownName(
            f"there is no agent {name[:60]!r}; `tmuxorch ls --all` lists them all, "
            "`tmuxorch history` the removed ones"
        )

    def find_removed(self, name: str) -> HistoryEntry:
        """The removed agent by name, id or unique prefix, the newest of its name."""
        self.config()
        return history.find(self.ctx, name, here=self.repo_root())

    def look(self, agent: Agent) -> dict[str, Any]:
        """The agent's JSON with a fresh look at its process."""
        return view.agent_json(agent, look(self.ctx.state_dir, agent))

    def narrate(self, line: str) -> None:
        if not self.quiet:
            sys.stderr.write(f"{literal(line)}\n")
            sys.stderr.flush()
