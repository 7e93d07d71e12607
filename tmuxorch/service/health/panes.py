"""The marked panes of every tmux server that agents were put on, asked over one channel each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.tmux.control import Control
from tmuxorch.adapters.tmux.server import Pane, Tmux, panes_query, read_panes
from tmuxorch.core.observation import Unknown
from tmuxorch.errors import TmuxFailed, TmuxNoServer, TmuxorchError, TmuxTimeout
from tmuxorch.model import AgentId, PaneId, ProcessId

if TYPE_CHECKING:
    from collections.abc import Collection

ANSWER_S = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One good answer of one server."""

    server: ProcessId
    panes: dict[AgentId, list[Pane]]


class Servers:
    """The channels to tmux servers, opened when first needed and again after they broke."""

    def __init__(self, *, timeout_s: float = ANSWER_S) -> None:
        self.timeout_s = timeout_s
        self._channels: dict[str, Control] = {}
        self._identities: dict[str, ProcessId] = {}

    def channels(self) -> list[Control]:
        return list(self._channels.values())

    def ask(self, socket: str, only: Collection[AgentId] = ()) -> Answer | Unknown:
        """The marked panes of the server on `socket`, or why there is no answer."""
        try:
            found = read_panes(socket, self.run(socket, *panes_query(only)))
            server = self._identity(socket)
        except (TmuxorchError, OSError, ValueError) as e:  # also: no descriptors left, no such pid
            return Unknown(str(e))
        panes: dict[AgentId, list[Pane]] = {}
        for pane in found:
            panes.setdefault(pane.agent_id, []).append(pane)
        return Answer(server, panes)

    def confirm(self, socket: str, answer: Answer) -> Answer | Unknown:
        """The answer, if the server has a session still: one without any is about to end."""
        try:
            sessions = self.run(socket, "list-sessions", "-F", "#{session_id}")
        except (TmuxorchError, OSError) as e:
            return Unknown(str(e))
        return answer if sessions.strip() else Unknown(f"the tmux server on {socket} is ending")

    def find_pane(self, socket: str, agent_id: AgentId) -> Pane | None:
        """The agent's pane; None if the server has none, or has gone. No answer is raised."""
        try:
            found = read_panes(socket, self.run(socket, *panes_query([agent_id])))
        except TmuxNoServer:
            return None
        return found[0] if found else None

    def capture(self, socket: str, pane: PaneId, *, colours: bool = False) -> str:
        escapes = ["-e"] if colours else []
        return self.run(socket, "capture-pane", "-p", *escapes, "-t", pane)

    def run(self, socket: str, *args: str) -> str:
        """One command over the channel, or by itself where there is no home session to attach to.

        A channel that broke is dropped, and opened anew at the next call.
        """
        if socket not in self._channels:
            self._channels[socket] = Control(socket, timeout_s=self.timeout_s)
        try:
            return self._channels[socket].run(*args)
        except TmuxTimeout:
            raise
        except TmuxFailed as e:
            if not (isinstance(e, TmuxNoServer) or "find session" in e.stderr):
                raise
            self.drop(socket)
            if "find session" in e.stderr:
                return Tmux(socket, timeout_s=self.timeout_s).run(*args)
            raise

    def drop(self, socket: str) -> None:
        self._identities.pop(socket, None)
        channel = self._channels.pop(socket, None)
        if channel is not None:
            channel.close()

    def close(self) -> None:
        for socket in list(self._channels):
            self.drop(socket)

    def _identity(self, socket: str) -> ProcessId:
        """Who answers; a channel stays with the server it was opened to."""
        known = self._identities.get(socket)
        if known is None or socket not in self._channels:
            pid = self.run(socket, "display-message", "-p", "#{pid}").strip()
            server = procfs.identify(int(pid)) if pid.isdigit() else None
            if server is None:
                raise TmuxFailed(f"the tmux server on {socket} ended while being asked")
            known = self._identities[socket] = server
        return known
