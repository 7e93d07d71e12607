"""One process as the process table shows it, whatever system it was read from."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tmuxorch.model import ProcessId

MARKER = b"TMUXORCH_AGENT_ID="


@dataclass(slots=True)
class Row:
    """One process of the table.

    Its identity is read before everything else: should the pid change hands in between,
    it is the identity of a dead process, and nobody gets what is meant for it.
    `environ`, `marker` and `cwd` are None where another user's process hides them.
    """

    id: ProcessId
    name: str
    parent: int
    group: int
    session: int
    uid: int
    on_terminal: bool
    ended: bool
    environ: bytes | None = None
    marker: str | None = None
    cwd: str | None = None

    @property
    def pid(self) -> int:
        return self.id.pid

    @property
    def is_wiped(self) -> bool:
        """Whether the process was started with `env -i` or the like.

        Shells, editors and all else that a person starts have a HOME. A program that wrote
        its title over its environment has text without `=` there.
        """
        return self.environ is not None and all(
            b"=" in entry and not entry.startswith(b"HOME=")
            for entry in self.environ.split(b"\0")[:-1]
        )

    @property
    def is_tmux_server(self) -> bool:
        """Where programs cannot rename themselves (macOS) a server is a tmux without terminal."""
        return self.name == "tmux: server" or (self.name == "tmux" and not self.on_terminal)


Table = dict[int, Row]


def find_marker(environ: bytes) -> str | None:
    """The id of the agent for whom the process was started."""
    _, marker, rest = (b"\0" + environ).partition(b"\0" + MARKER)
    return os.fsdecode(rest.partition(b"\0")[0]) if marker else None
