"""Run worlds one after the other until the time or the kills are up; exit 1 if a promise broke."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.soak.life import Life
from tests.soak.reaping import adopt_orphans
from tests.soak.violations import Evidence, Violation
from tests.soak.world import World, can_mount

ROUNDS = 12
SHOWN, WIDE = 6, 400


def main() -> int:
    args = _arguments()
    seed = args.seed if args.seed is not None else random.randrange(1_000_000)
    if not can_mount():
        _say("no disks of our own can be mounted here: full disks are left out")
    adopt_orphans()
    evidence = Evidence(Path(args.keep or tempfile.mkdtemp(prefix="soak-found-")))
    soak = Soak(evidence, set(args.without), args.seconds, args.kills)
    while not soak.is_over():
        soak.live(seed)
        seed += 1
    kinds = ", ".join(f"{kind} {n}" for kind, n in soak.kills.most_common())
    found = ", ".join(f"{kind} {n}" for kind, n in evidence.counts.most_common())
    _say(f"kills: {soak.kills.total()} by kind: {kinds or 'none'}")
    _say(
        f"{soak.rounds} rounds, {soak.rate():.0f} kills/min, restores compared: {soak.proven}, "
        f"quarantined by an accident and removed later: {soak.freed}, "
        f"crashes of tmux itself: {soak.crashes}"
    )
    _say(f"violations: {evidence.counts.total()}" + (f" ({found})" if found else ""))
    if evidence.counts:
        _say(f"kept in {evidence.directory}")
    elif not args.keep:
        evidence.directory.rmdir()
    return 1 if evidence.counts else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    until = parser.add_mutually_exclusive_group()
    until.add_argument("--seconds", type=float, help="end after so long; default: 60")
    until.add_argument("--kills", type=int, help="end after so many kills")
    parser.add_argument("--seed", type=int, help="of the first world; each next one adds 1")
    parser.add_argument("--keep", metavar="DIR", help="where what is found is kept")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME",
        help="leave out a kind of round, verb, work or victim",
    )
    args = parser.parse_args()
    if args.seconds is None and args.kills is None:
        args.seconds = 60.0
    return args


class Soak:
    """All worlds together."""

    def __init__(
        self, evidence: Evidence, without: set[str], seconds: float | None, kills: int | None
    ) -> None:
        self.evidence = evidence
        self.without = without
        self.begun = time.monotonic()
        self.deadline = self.begun + seconds if seconds is not None else None
        self.most_kills = kills
        self.kills: Counter[str] = Counter()
        self.rounds = 0
        self.proven = self.freed = self.crashes = 0
        self.broken = False

    def is_over(self) -> bool:
        if self.broken:
            return True
        if self.deadline is not None and time.monotonic() > self.deadline:
            return True
        return self.most_kills is not None and self.kills.total() >= self.most_kills

    def rate(self) -> float:
        return self.kills.total() / (time.monotonic() - self.begun) * 60

    def live(self, seed: int) -> None:
        """One world; the first violation ends it."""
        world = World(seed, mounts=can_mount())
        number = 0
        try:
            life = Life(world, self.without)
            try:
                while number < ROUNDS and not self.is_over():
                    number += 1
                    kind = self._round(life)
                    self._tell(f"seed {seed} round {number} ({kind})", life)
                number += 1
                life.end()
            except (Violation, subprocess.TimeoutExpired) as broken:
                self._judge(f"seed-{seed}-round-{number}", broken, life)
            finally:
                self.crashes += life.crashes
        except Exception:  # noqa: BLE001 -- the border: what the soak itself gets wrong ends it
            traceback.print_exc()
            _say(f"the soak itself failed in seed {seed} round {number}")
            self.evidence.counts["soak"] += 1
            self.broken = True
        finally:
            world.close()

    def _round(self, life: Life) -> str:
        before = life.killer.counts.copy()
        self.rounds += 1
        proven, freed = len(life.ledger.proven), life.freed
        try:
            return life.round()
        finally:
            self.kills += life.killer.counts - before
            self.proven += len(life.ledger.proven) - proven
            self.freed += life.freed - freed

    def _judge(self, title: str, broken: Exception, life: Life) -> None:
        """Keep what was broken by us; a world whose tmux broke it is given up."""
        violation = broken if isinstance(broken, Violation) else Violation([("hang", str(broken))])
        if life.is_by_crash(violation):
            _say(f"{title}: tmux crashed by itself: {violation.lines()[0][:WIDE]}")
            return
        place = self.evidence.keep(
            title, violation, [*life.worked, "", *life.steps], life.world.directory
        )
        _say(f"VIOLATION {title} ({life.world.kind}, cleanup.dead {life.world.dead}), see {place}")
        for line in violation.lines()[:SHOWN]:
            _say(f"  {line[:WIDE]}")

    def _tell(self, what: str, life: Life) -> None:
        _say(
            f"{what}: {self.kills.total()} kills, {len(life.ledger.rows)} agents, "
            f"{len(life.ledger.gone)} saves to prove, {self.rate():.0f} kills/min, "
            f"{self.evidence.counts.total()} violations"
        )


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
