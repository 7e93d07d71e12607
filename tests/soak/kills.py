"""SIGKILL for whatever runs in a world, each kind counted."""

from __future__ import annotations

import heapq
import random
import time
from collections import Counter
from collections.abc import Callable

from tests.soak import table
from tests.soak.commands import Command
from tests.soak.world import World
from tmuxorch.adapters.store.watchfile import observe_watcher

# How long a child lives before its kill: git is over in some ms. On a busy machine it has not
# become git by then; most of those are looked at again.
CHILD_S = (0.002, 0.02)
AGAIN_S = 0.002
EARLY = 0.1


class Killer:
    """Kills that are due, kills that will be, and how many of each kind there were."""

    def __init__(self, world: World, dice: random.Random, note: Callable[[str], None]) -> None:
        self.world = world
        self.dice = dice
        self.note = note
        self.counts: Counter[str] = Counter()
        self.child_share = 0.0
        self.server_died = False
        self._due: list[tuple[float, int, str]] = []
        self._seen: set[int] = set()

    def begin_round(self, child_share: float) -> None:
        self.child_share = child_share
        self.server_died = False
        self._seen.clear()

    def plan(self, kind: str, at: float) -> None:
        """Kill one of this kind (agent, shim, watcher, server) at this moment."""
        heapq.heappush(self._due, (at, 0, kind))

    def look_below(self, pid: int, on_kill: Callable[[], None]) -> None:
        """Meet the children of the process; each is spared or doomed at first sight."""
        for child in table.children(pid):
            if child in self._seen:
                continue
            self._seen.add(child)
            if self.dice.random() < self.child_share:
                at = time.monotonic() + self.dice.uniform(*CHILD_S)
                heapq.heappush(self._due, (at, child, "child"))
                on_kill()

    def strike(self, *, all_of_them: bool = False) -> None:
        """Do the kills that are due, or all that are planned."""
        while self._due and (all_of_them or self._due[0][0] <= time.monotonic()):
            _, pid, kind = heapq.heappop(self._due)
            early = kind == "child" and not all_of_them and table.is_fork(pid)
            if early and self.dice.random() >= EARLY:
                heapq.heappush(self._due, (time.monotonic() + AGAIN_S, pid, kind))
            else:
                self._strike_one(pid, kind)

    def strike_command(self, command: Command) -> None:
        if table.kill(command.pid) is not None:
            command.harmed = True
            self._count("command", f"{command}")

    def watcher(self) -> int | None:
        found = observe_watcher(str(self.world.state))
        return found.pid if found.alive else None

    def _strike_one(self, pid: int, kind: str) -> None:
        if kind != "child":
            found = self._find(kind)
            if found is None:
                return
            pid = found
        name = table.kill(pid)
        if name is None:
            return
        self.server_died = self.server_died or name == "tmux: server"
        if kind == "child":
            kind = "git" if name.startswith("git") else f"child {name.replace(':', '')}"
        self._count(kind, f"{name} (pid {pid})")

    def _count(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        self.note(f"killed {kind}: {what}")

    def _find(self, kind: str) -> int | None:
        if kind == "watcher":
            return self.watcher()
        if kind == "server":
            servers = [p for p in self.world.processes() if p.name == "tmux: server"]
            return servers[0].pid if servers else None
        mine = [p for p in self.world.processes() if p.owner and not p.name.startswith("git")]
        fitting = [p.pid for p in mine if p.is_shim == (kind == "shim")]
        return self.dice.choice(fitting) if fitting else None

    def crash_server(self) -> None:
        """End the tmux server, by SIGKILL or by its own command."""
        if self.dice.random() < 0.5:
            self._strike_one(0, "server")
            return
        self.server_died = True
        self.world.tmux("kill-server")
        self._count("server", "by kill-server")
