"""Where this run of the screen belongs: environment, tmux server, repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch import paths

if TYPE_CHECKING:
    from tmuxorch.config import Config
    from tmuxorch.core.progress import Phase
    from tmuxorch.model import AgentId
    from tmuxorch.service.context import Context


def _nothing(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Workplace:
    """What the command line handed over; `repo` is None outside a repository.

    `keys` is None until the configuration has been read, which the first frame does not wait for.
    """

    environ: Mapping[str, str]
    socket: str
    repo: str | None
    cwd: str
    keys: Mapping[str, str] | None = None
    title: str = "tmuxorch"
    tmux_timeout_s: float = 10.0
    theme: str | None = None

    @property
    def state_dir(self) -> str:
        return paths.state_dir(self.environ)

    def open_context(self, progress: Callable[[AgentId, Phase], None] = _nothing) -> Context:
        """A context of one's own: a thread cannot use another's connection to the store."""
        from tmuxorch.service.context import open_context

        return open_context(
            self.environ, socket=self.socket, tmux_timeout_s=self.tmux_timeout_s, progress=progress
        )

    def config_of(self, ctx: Context, repo: str) -> Config:
        """For what must be possible whatever the agent's repository says."""
        return ctx.settings.for_ending(repo)

    def load_config(self, ctx: Context, repo: str | None) -> Config:
        return ctx.settings.own() if repo is None else ctx.settings.of(repo)
