"""Commands of one world: started, and judged when they have ended."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from tests.soak import commands, table
from tests.soak.commands import Command
from tests.soak.violations import Violation
from tests.soak.world import World

# Only a bug takes so long, on a machine with other work too.
HANG_S = 120.0
GOOD = (0, 1, 2, 130)
ENDED = ("exited", "lost")


class Runner:
    """Starts commands, remembers how long they take, and says what is wrong with their ends."""

    def __init__(self, world: World, dice: random.Random, note: Callable[[str], None]) -> None:
        self.world = world
        self.dice = dice
        self.note = note
        self.usual_s: dict[str, float] = {}
        self._numbers = count(1)
        self._known: dict[int, int] = {}

    def start(self, args: Sequence[str]) -> Command:
        out = self.world.directory / "out" / f"{next(self._numbers)}.out"
        forked = self.dice.random() < 0.8
        before = self._agents_alive() if args[0] == "ls" else {}
        command = commands.start(
            args, cwd=self.world.repo, environ=self.world.environ, out=out, forked=forked
        )
        command.alive_before = before
        command.dead_before = self._known.keys() - before.keys()
        self.note(f"began {command}")
        return command

    def run(self, *args: str) -> Command:
        """Run it undisturbed to its end."""
        command = self.start(args)
        while not command.poll():
            if time.monotonic() - command.begun > HANG_S:
                raise Violation([("hang", where(command))])
            time.sleep(0.005)
        if found := list(self.judge(command)):
            raise Violation(found)
        return command

    def json(self, *args: str) -> Any:
        """The data that a command prints, which must succeed."""
        command = self.run(*args)
        if command.status != 0:
            words = f"{command} ended with {command.status}: {command.said}"
            raise Violation([("quiet-command-failed", words)])
        return json.loads(command.printed)

    def judge(self, command: Command) -> Iterator[tuple[str, str]]:
        """What no command may do, however it was disturbed, short of being killed itself."""
        took_s = time.monotonic() - command.begun
        said = command.said
        self.note(f"{command} ended with {command.status} after {took_s:.2f} s: {said.strip()}")
        if command.status == commands.OWN_FAULT:
            raise RuntimeError(f"{command} was not run as it should be: {said}")
        if command.status == -9 and command.harmed:
            return
        if command.status not in GOOD or "Traceback" in said:
            yield "bad-exit", f"{command} ended with {command.status}: {said}"
        if not command.harmed:
            before = self.usual_s.get(command.verb, took_s)
            self.usual_s[command.verb] = 0.8 * before + 0.2 * took_s
        if command.verb == "ls" and command.status == 0:
            yield from self._judge_list(command)

    def _judge_list(self, command: Command) -> Iterator[tuple[str, str]]:
        """Dead before the list was asked for: not shown as alive. Alive after it: not as dead."""
        before = command.alive_before
        after = self._agents_alive()
        alive = {pid for pid, started in before.items() if after.get(pid) == started}
        for row in json.loads(command.printed):
            pid = row["process"]["pid"]
            words = f"{row['name']} ({row['id']}) pid {pid} is listed as {row['state']}, "
            words += f"{row['status']}, alive: {row['process']['alive']}"
            if pid in command.dead_before and (
                row["process"]["alive"] or row["status"] in ("working", "idle")
            ):
                yield "dead-shown-alive", words
            if pid in alive and (row["process"]["alive"] is False or row["state"] in ENDED):
                yield "live-shown-dead", words
        self._known |= before | after

    def _agents_alive(self) -> dict[int, int]:
        """The agents' processes with their starts; one that just executes has no environment."""
        found = {p.pid: p.started for p in self.world.processes() if p.agent and not p.is_shim}
        for pid, started in self._known.items():
            process = table.look(pid)
            if process is not None and process.started == started:
                found[pid] = started
        return found


def where(command: Command) -> str:
    """What a command that does not end is waiting for."""
    lines = [f"{command} has not ended after {HANG_S:g} s: {command.said}"]
    for pid in (command.pid, *table.children(command.pid)):
        found = table.look(pid)
        try:
            at = Path(f"/proc/{pid}/wchan").read_text()
        except OSError:
            at = "?"
        lines.append(f"{pid} {found.command if found else 'gone'} in {at}")
    return "\n".join(lines)
