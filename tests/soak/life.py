"""A world's life: rounds of accidents, each followed by quiet, the promises, and new work."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

from tests import works
from tests.soak import load
from tests.soak.chaos import Chaos, Kind
from tests.soak.commands import Command
from tests.soak.kills import Killer
from tests.soak.ledger import Ledger
from tests.soak.promises import SETTLE_S, Found, Promises
from tests.soak.reaping import reap
from tests.soak.running import HANG_S, Runner, where
from tests.soak.violations import Violation
from tests.soak.world import AGENT, World, wait_until

ALL_ROWS = "100000"
# What a crash of tmux itself explains, when it happens where nothing should: no loss, no remains.
BY_CRASH = frozenset(
    {"new-failed", "restore-failed", "quiet-command-failed", "tmux-died", "tmux-hangs"}
)
SAMPLES = 2


class Life:
    """One world from its first round to the restore of everything."""

    def __init__(self, world: World, without: set[str]) -> None:
        self.world = world
        self.without = without
        self.steps: list[str] = []
        self.worked: list[str] = []
        self.freed = 0
        self.crashes = 0
        self._crashed = False
        self.dice = random.Random(world.seed)
        self._begun = time.monotonic()
        self.killer = Killer(world, self.dice, self.note)
        self.runner = Runner(world, self.dice, self.note)
        self.ledger = Ledger(world)
        self.chaos = Chaos(world, self.ledger, self.runner, self.killer, self.dice, without)
        self.promises = Promises(world, self.ledger)
        world.open_foreign_window()

    def note(self, step: str) -> None:
        self.steps.append(f"{time.monotonic() - self._begun:9.3f} {step}")

    def round(self) -> str:
        """Accidents, quiet, promises, a sample of restores, new work; what kind it was."""
        self.steps.clear()
        self._crashed = False
        before = self.ledger.running()
        kind = self.chaos.choose()
        self.note(f"a round of kind {kind.name}")
        self.chaos.rage(kind)
        self.settle()
        self._check(self._kept(kind, before))
        for agent_id in self._some(list(self.ledger.gone), SAMPLES):
            self.prove(agent_id)
        self.populate()
        self.work()
        return kind.name

    def populate(self) -> None:
        """Make agents while all is calm, so that the accidents find somebody."""
        started = [
            self.runner.start(self.chaos.load.new())
            for _ in range(load.FEW - len(self.ledger.rows))
        ]
        for command in started:
            self._finish(command)
        if started:
            self._take()

    def _take(self) -> None:
        rows, history = self._look()
        if found := list(self.ledger.take(rows, {row["id"] for row in history})):
            raise Violation(found)

    def settle(self) -> None:
        """Carry on what was cut off, with the tool's own commands."""
        if not wait_until(lambda: not self._busy(), HANG_S):
            raise Violation([("hang", f"{p.pid} {p.command}") for p in self._busy()])
        self._reap()
        if self.killer.server_died and not wait_until(self._one_server, SETTLE_S):
            raise Violation([("tmux-hangs", "the server that was ended does not go")])
        self.world.age_remains()
        for args in (["watch", "--once"], ["watch", "--once"], ["doctor", "--repair"]):
            self.runner.run(*args)
        if self._take_reported_locks(self.runner.run("sweep", "--apply", "--json")):
            self.runner.run("watch", "--once")
            self.runner.run("sweep", "--apply", "--json")

    def _take_reported_locks(self, swept: Command) -> bool:
        """Do by hand what the sweep says a person has to: a lock may be somebody else's."""
        finds = json.loads(swept.printed) if swept.printed else []
        locks = [f for f in finds if str(f.get("path", "")).endswith(".lock") and f.get("command")]
        for find in locks:
            self.note(f"taken away by hand: {find}")
            Path(find["path"]).unlink(missing_ok=True)
        return bool(locks)

    def _reap(self) -> None:
        """A server that crashed by itself is as good as killed, and counted apart."""
        for pid in reap():
            self.note(f"the tmux server (pid {pid}) crashed by itself")
            self.crashes += 1
            self._crashed = True
            self.killer.server_died = True

    def is_by_crash(self, violation: Violation) -> bool:
        """Whether tmux crashed by itself in this round, and that explains all that is broken."""
        self._reap()
        return self._crashed and all(kind in BY_CRASH for kind, _ in violation.found)

    def _one_server(self) -> bool:
        """Whether at most the server on the socket is there, and none that is about to go."""
        servers = [p.pid for p in self.world.processes() if p.name == "tmux: server"]
        return not servers or servers == [self.world.server_pid()]

    def _busy(self) -> list[Any]:
        """What will end by itself: gits and deletions of killed commands, agents that finish."""
        brief = tuple(f"{AGENT} {kind}" for kind in load.BRIEF)
        return [
            p
            for p in self.world.processes()
            if p.name.startswith("git")
            or (p.agent is None and p.name in ("rm", "sh", "chmod"))
            or any(command in p.command for command in brief)
        ]

    def _kept(self, kind: Kind, before: set[str]) -> set[str]:
        """Which agents must still be listed: no crash of tmux and no clock removes any."""
        return set() if kind.kills or kind.commands else before

    def _check(self, kept: set[str]) -> None:
        self._reap()
        found: list[tuple[str, str]] = list(self.promises.server_lives(self.killer.server_died))
        if found:
            raise Violation(found)
        rows, history = self._look()
        if quarantined := [row for row in rows if row["state"] == "quarantined"]:
            for row in quarantined:
                self._free(row)
            rows, history = self._look()
        found += self.ledger.take(rows, {row["id"] for row in history})
        found += [("removed-by-crash", i) for i in kept - {row["id"] for row in rows}]
        found += _failed_restores(history)
        found += self.promises.check(rows, history)
        found += self.promises.nothing_lost()
        if found:
            raise Violation(found)

    def _look(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The list and the history of one moment, when the watcher has done what it had begun."""
        deadline = time.monotonic() + SETTLE_S
        rows = self.runner.json("ls", "--all", "--json")
        while True:
            history = self.runner.json("history", "--json", "-n", ALL_ROWS)
            now = self.runner.json("ls", "--all", "--json")
            half_done = any(row["state"] in ("creating", "removing") for row in now)
            if (_stable(rows) == _stable(now) and not half_done) or time.monotonic() > deadline:
                return now, history
            rows = now

    def _free(self, row: dict[str, Any]) -> None:
        """What was quarantined in an accident can be removed once that is over."""
        self.freed += 1
        done = self.runner.run("rm", "-y", row["id"])
        if done.status != 0:
            raise Violation([("quarantined-for-ever", f"{row['name']}: {done.said}")])

    def prove(self, agent_id: str) -> None:
        """Restore a removed agent and compare it with what it was."""
        known = self.ledger.gone.pop(agent_id)
        name = f"proof-{agent_id}"
        command = self.runner.start(["restore", agent_id, "-n", name, "--json"])
        self._finish(command)
        (row,) = [r for r in self.runner.json("ls", "--all", "--json") if r["name"] == name]
        heir = self.ledger.heir(known, row)
        self.ledger.rows.append(row)
        if losses := list(self.ledger.losses(heir)):
            words = [("lost-in-save", f"{agent_id} as {heir.worktree}: {loss}") for loss in losses]
            raise Violation(words)
        self.ledger.proven.add(agent_id)

    def _finish(self, command: Command) -> None:
        """Wait for a command that nothing disturbs, which must succeed."""
        if not wait_until(command.poll, HANG_S):
            raise Violation([("hang", where(command))])
        found = list(self.runner.judge(command))
        if command.status != 0:
            found.append((f"{command.verb}-failed", f"{command}: {command.said}"))
        if found:
            raise Violation(found)

    def work(self) -> None:
        """Let some agents have done something, and note everybody's work."""
        names = [name for name in works.WORKS if name not in self.without]
        for agent_id in self._some(list(self.ledger.live), 4):
            known = self.ledger.live[agent_id]
            bench = works.Bench(known.worktree, self.world.persons, self.dice)
            for name in self.dice.sample(names, self.dice.randint(1, 4)):
                self.worked.append(f"work in {known.worktree}: {name}")
                works.WORKS[name](bench)
            self.ledger.observe(agent_id)
        for agent_id, known in list(self.ledger.live.items()):
            if known.tree is None or known.is_loose:
                self.ledger.observe(agent_id)
        self.world.open_foreign_window()

    def _some(self, of: list[str], most: int) -> list[str]:
        return self.dice.sample(sorted(of), min(most, len(of)))

    def end(self) -> None:
        """Collect garbage, restore all that was not proven yet, then remove everybody."""
        self.steps.clear()
        self.world.git("reflog", "expire", "--expire=now", "--all", ok=False)
        self.world.git("gc", "-q", "--prune=now", ok=False)
        for agent_id in sorted(self.ledger.gone):
            self.prove(agent_id)
        rows = self.runner.json("ls", "--all", "--json")
        if rows:
            done = self.runner.run("rm", "-y", *(row["id"] for row in rows))
            if done.status != 0:
                raise Violation([("removal-failed", done.said)])
        self.settle()
        self._check(set())
        if left := self.runner.json("ls", "--all", "--json"):
            raise Violation([("removal-failed", str(left))])


def _stable(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["id"], row["state"]) for row in rows]


def _failed_restores(history: list[dict[str, Any]]) -> Found:
    """A restore that failed or was killed has no history of its own."""
    for row in history:
        if row["reason"] == "create_failed" and row["name"].startswith(("back-", "proof-")):
            yield "failed-restore-recorded", f"{row['name']} ({row['id']})"
