"""Which command comes next: every verb, on agents that are there, were there or never were."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Sequence
from itertools import count

from tests.soak.ledger import Ledger
from tests.soak.world import AGENT, World
from tmuxorch.cli.app import VERBS

LASTING = ("idle", "idle", "chat", "chat", "echo", "stubborn")
BRIEF = ("empty", "done", "crash")
# So many agents are enough; with more, removing is likelier.
CROWD = 10
FEW = 5


class Load:
    """The dice and the memory of what was asked for."""

    def __init__(self, world: World, ledger: Ledger, dice: random.Random) -> None:
        self.world = world
        self.ledger = ledger
        self.dice = dice
        self._numbers = count(1)

    def choose(self, without: Container[str]) -> list[str]:
        """The next command's arguments."""
        crowded = len(self.ledger.rows) > CROWD
        weights: dict[str, tuple[float, Callable[[], list[str]]]] = {
            "new": (1 if crowded else 6, self._new),
            "rm": (9 if crowded else 4, self._rm),
            "restore": (1 if crowded else 3, self._restore),
            "merge": (2, self._merge),
            "restart": (3, self._restart),
            "stop": (2, lambda: ["stop", self._name()]),
            "send": (2, lambda: ["send", self._name(), f"message {next(self._numbers)}"]),
            "sweep": (2, lambda: self.dice.choice([["sweep", "--apply"], ["sweep", "--json"]])),
            "doctor": (1, lambda: ["doctor", *self.dice.choice([[], ["--repair"]])]),
            "watch": (1, lambda: ["watch", "--once"]),
            "ls": (3, lambda: ["ls", "--all", "--json"]),
            "show": (1, lambda: ["show", self._name()]),
            "logs": (1, lambda: ["logs", self._name()]),
            "diff": (1, lambda: ["diff", self._name(), *self.dice.choice([[], ["--stat"]])]),
            "why": (0.5, lambda: ["why", self._name()]),
            "events": (0.5, lambda: ["events", "--json"]),
            "history": (0.5, lambda: ["history", "--json"]),
            "rename": (1, lambda: ["rename", self._name(), f"r{next(self._numbers)}"]),
        }
        verbs = [verb for verb in weights if verb in VERBS and verb not in without]
        (verb,) = self.dice.choices(verbs, [weights[verb][0] for verb in verbs])
        return weights[verb][1]()

    def _new(self) -> list[str]:
        return self.new((*LASTING, *BRIEF))

    def new(self, kinds: Sequence[str] = LASTING) -> list[str]:
        """Make an agent, of a kind that stays until it is ended unless told otherwise."""
        kind = self.dice.choice(kinds)
        number = next(self._numbers)
        args = ["new", f"task {number}", "-b", self.dice.choice(["main", "integration"])]
        if self.dice.random() < 0.7:
            args += ["-n", f"a{number}"]
        if kind in LASTING and self.dice.random() < 0.15:
            args += ["--kind", "persistent"]
        if self.dice.random() < 0.3:
            args += ["--no-wait"]
        return [*args, "--", "sh", str(AGENT), kind, str(self.world.directory / "journal")]

    def _rm(self) -> list[str]:
        args = ["rm", self._name()]
        if self.dice.random() < 0.2:
            args.append(self._name())
        if self.dice.random() < 0.85:
            args.append("-y")
        if self.dice.random() < 0.1:
            args.append("--keep-branch")
        return args

    def _restore(self) -> list[str]:
        removed = [*self.ledger.gone, *self.ledger.proven] or ["nobody"]
        args = ["restore", self.dice.choice(removed), "-n", f"back-{next(self._numbers)}"]
        return [*args, "--start"] if self.dice.random() < 0.3 else args

    def _merge(self) -> list[str]:
        name = self._name()
        args = ["merge", name, "--into", "integration"]
        args += self.dice.choice([[], ["--squash"], ["--rebase"]])
        args += self.dice.choice([[], ["--rm"]])
        if self.dice.random() < 0.3:
            args += ["--commit"]
            self.ledger.loosen(name)
        return args

    def _restart(self) -> list[str]:
        if self.dice.random() < 0.4:
            return ["restart", "--lost"]
        return ["restart", self._name(), *self.dice.choice([[], ["--fresh"]])]

    def _name(self) -> str:
        names = self.ledger.names()
        if not names or self.dice.random() < 0.1:
            return f"a{self.dice.randrange(1, 30)}"
        return self.dice.choice(names)
