"""One round's accidents: commands at random, and kills at random moments of their work."""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass

from tests.soak import clock
from tests.soak.commands import Command
from tests.soak.kills import Killer
from tests.soak.ledger import Ledger
from tests.soak.load import Load
from tests.soak.running import HANG_S, Runner, where
from tests.soak.violations import Violation
from tests.soak.world import World

WIDTH = 6
TICK_S = 0.001
KILLED, NEW_KILLED = 0.6, 0.35
STEPS_S = (3600.0, -3600.0, 86400.0 * 40, -86400.0, 7.0, -7.0)


@dataclass(frozen=True)
class Kind:
    """What a round consists of."""

    name: str
    weight: float
    commands: int = 36
    kills: bool = True
    full_disk: bool = False
    clock_step: bool = False
    prune: bool = False
    crash: bool = False


KINDS = (
    Kind("mixed", 8),
    Kind("prune", 2, prune=True),
    Kind("clock", 1.5, clock_step=True),
    Kind("full disk", 2, full_disk=True),
    Kind("server crash", 1, commands=0, kills=False, crash=True),
    Kind("clock step alone", 0.4, commands=0, kills=False, clock_step=True),
)


class Chaos:
    """The accidents of one world, round by round."""

    def __init__(
        self,
        world: World,
        ledger: Ledger,
        runner: Runner,
        killer: Killer,
        dice: random.Random,
        without: set[str],
    ) -> None:
        self.world = world
        self.without = without
        self.ledger = ledger
        self.runner = runner
        self.killer = killer
        self.dice = dice
        self.load = Load(world, ledger, dice)

    def choose(self) -> Kind:
        kinds = [k for k in KINDS if k.name not in self.without]
        if not self.world.disks:
            kinds = [k for k in kinds if not k.full_disk]
        return self.dice.choices(kinds, [k.weight for k in kinds])[0]

    def rage(self, kind: Kind) -> None:
        """Do it all, and return when every command has ended."""
        begun = time.monotonic()
        share = self.dice.choice([0.1, 0.3, 0.5])
        self.killer.begin_round(share if kind.kills and "git" not in self.without else 0.0)
        if kind.kills:
            self._plan_kills(begun)
        # A merge makes objects that no ref holds yet, which is for git itself to protect.
        without = self.without | {"merge"} if kind.prune else self.without
        todo = [self.load.choose(without) for _ in range(kind.commands)]
        if kind.full_disk:
            self.world.fill_disk(self.dice.choice(self.world.disks))
        if kind.clock_step:
            clock.set_offset(self.world.clock, self.dice.choice(STEPS_S))
        collector = self._collect() if kind.prune else None
        if kind.crash:
            self.killer.crash_server()
        running: list[Command] = []
        found: list[tuple[str, str]] = []
        while todo or running:
            while todo and len(running) < WIDTH and self.dice.random() < 0.5:
                running.append(self._begin(todo.pop(), kind))
            self._strike(running)
            for command in [c for c in running if c.poll()]:
                running.remove(command)
                found += self.runner.judge(command)
            if kind.prune and (collector is None or collector.poll() is not None):
                collector = self._collect()
            if late := [c for c in running if time.monotonic() - c.begun > HANG_S]:
                raise Violation([("hang", where(command)) for command in late])
            time.sleep(TICK_S)
        self.killer.strike(all_of_them=True)
        if collector is not None:
            collector.wait()
        self.world.free_disks()
        if found:
            raise Violation(found)

    def _begin(self, args: list[str], kind: Kind) -> Command:
        command = self.runner.start(args)
        share = NEW_KILLED if command.verb == "new" else KILLED
        if kind.kills and self.dice.random() < share:
            usual_s = self.runner.usual_s.get(command.verb, 0.15)
            command.kill_at = command.begun + self.dice.uniform(0.005, 1.2 * usual_s)
        return command

    def _strike(self, running: list[Command]) -> None:
        self.killer.strike()
        for command in running:
            if command.kill_at is not None and command.kill_at <= time.monotonic():
                command.kill_at = None
                self.killer.strike_command(command)
            elif self.killer.child_share:
                self.killer.look_below(command.pid, lambda c=command: _harm(c))  # type: ignore[misc]
        if self.killer.child_share and self.dice.random() < 0.2:
            watcher = self.killer.watcher()
            if watcher is not None:
                self.killer.look_below(watcher, lambda: None)

    def _plan_kills(self, begun: float) -> None:
        several = [("agent", 10), ("shim", 7), ("watcher", 5)]
        planned = [kind for kind, most in several for _ in range(self.dice.randint(0, most))]
        if self.dice.random() < 0.12:
            planned.append("server")
        for kind in (kind for kind in planned if kind not in self.without):
            self.killer.plan(kind, begun + self.dice.uniform(0, 3.5))

    def _collect(self) -> subprocess.Popen[bytes]:
        """The person tidies up the repository meanwhile."""
        args = self.dice.choice([["prune", "--expire=now"], ["gc", "-q"], ["pack-refs", "--all"]])
        return subprocess.Popen(
            ["git", *args],
            cwd=self.world.repo,
            env=self.world.persons,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _harm(command: Command) -> None:
    command.harmed = True
