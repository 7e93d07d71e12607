"""One program through every situation, and what tmuxorch said of it meanwhile."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agents_lab.model import Model, Request
from agents_lab.programs import PROGRAMS, Lab
from tmuxorch import config as configuration
from tmuxorch.core.inputbox import without_escapes
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.context import open_context
from tmuxorch.service.health.explaining import explain

SAMPLE_S = 0.1
SEEN_S = 20.0  # for a status to be told
TURN_S = 60.0
START_S = 90.0
COMMAND_S = 60.0
LATE_S = 2.0  # how late a status may be told
HELD_S = 1.5  # how long what is told at rest is watched
SETTLED_S = 0.7
MORE_QUESTIONS = 2
SHOWN_LINES = 15


@dataclass(frozen=True)
class Cell:
    """What came of one situation: whether it went right, and in which words."""

    right: bool | None
    said: str

    def __str__(self) -> str:
        return {True: "right", False: "WRONG", None: "-"}[self.right] + (
            f" {self.said}" if self.said else ""
        )


@dataclass(frozen=True)
class Sample:
    at: float
    status: str
    by: str


class Failed(Exception):
    """The situation did not come about, so nothing can be said of it."""


class Observer:
    """Asks again and again what the agent does, as `explain` does."""

    def __init__(self, environ: Mapping[str, str], name: str) -> None:
        self.environ = environ
        self.name = name
        self.samples: list[Sample] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _watch(self) -> None:
        ctx = open_context(self.environ, socket=self.environ["TMUXORCH_SOCKET"])
        config = configuration.load(Path(self.environ["TMUXORCH_CONFIG"]), None)
        while not self._stop.wait(SAMPLE_S):
            agent = next((a for a in ctx.store.agents() if a.task.name == self.name), None)
            if agent is None:
                continue
            began = time.monotonic()
            try:
                found = explain(ctx, config, agent)
            except TmuxorchError:
                continue
            self.samples.append(Sample(began, str(found.status), str(found.by)))

    @property
    def status(self) -> str:
        return self.samples[-1].status if self.samples else ""

    def between(self, begin: float, end: float) -> list[Sample]:
        return [s for s in self.samples if begin <= s.at <= end]


@dataclass
class Trial:
    """One program, its worker, and the cells of its column."""

    lab: Lab
    program: str
    model: Model
    environ: Mapping[str, str]
    tell: Callable[[str], None]
    cells: dict[str, Cell] = field(default_factory=dict)

    def run(self) -> None:
        with Observer(self.environ, self.program) as self.observer:
            try:
                self._try("start", self._start)
                for situation, how in self._situations():
                    self._try(situation, how)
            finally:
                self._tmuxorch("rm", "-y", self.program)

    def _situations(self) -> Iterator[tuple[str, Callable[[], Cell]]]:
        yield "send idle", self._send_idle
        yield "streaming", self._streaming
        yield "send streaming", self._send_streaming
        yield "turn over", self._turn_over
        yield "permission", self._permission
        yield "send into a dialog", self._send_into_dialog
        yield "answer no", lambda: self._answer(PROGRAMS[self.program].no, runs=False)
        yield "answer yes", self._answer_yes
        yield "question tool", self._question
        yield "answer a question", self._answer_question
        yield "interrupt", self._interrupt
        yield "exit", self._exit

    def _try(self, situation: str, how: Callable[[], Cell]) -> None:
        try:
            cell = how()
        except (Failed, subprocess.TimeoutExpired) as e:
            cell = Cell(False, f"({e})")
        if cell.right is False:
            self._keep_screen(situation)
        self.cells[situation] = cell
        self.tell(f"{self.program}: {situation}: {cell}")

    # -- situations -------------------------------------------------------------------------

    def _start(self) -> Cell:
        began = time.monotonic()
        made = self._tmuxorch("new", "-n", self.program, "-a", self.program, "QUICK to start with")
        if made.returncode:
            raise Failed(made.stderr.strip())
        self._until(lambda: self._heard("QUICK to start with"), START_S, "its task did not arrive")
        return self._told("idle", self._ended_at(self._heard("QUICK to start with")), began)

    def _send_idle(self) -> Cell:
        self._be_idle()
        return self._sends("QUICK first line\nwith a second", "QUICK first line", ("delivered",))

    def _streaming(self) -> Cell:
        self._be_idle()
        request = self._slowly("SLOWNOW please")
        self._until(lambda: request.ended_at is not None, TURN_S, "it went on")
        return self._told("working", request.began_at, until=request.ended_at)

    def _send_streaming(self) -> Cell:
        self._be_idle()
        self._slowly("SLOWNOW again")
        if self.program == "aider":
            done = self._tmuxorch("send", self.program, "QUICK meanwhile")
            is_refused = done.returncode == 1 and "while it works" in done.stderr
            return Cell(is_refused, "refused" if is_refused else done.stdout.strip())
        return self._sends("QUICK meanwhile", "QUICK meanwhile", ("delivered", "queued"))

    def _turn_over(self) -> Cell:
        self._be_idle()
        request = self._slowly("SLOWNOW once more")
        return self._told("idle", self._ended_at([request]))

    def _permission(self) -> Cell:
        self._be_idle()
        request = self._ask_for("TOOLNOW please")
        return self._told("waiting", self._ended_at([request]))

    def _send_into_dialog(self) -> Cell:
        self._be("waiting")
        before = len(self.model.requests)
        done = self._tmuxorch("send", self.program, "QUICK do not run it")
        time.sleep(1)
        is_safe = (
            done.returncode == 1
            and "nothing was sent" in done.stderr
            and len(self.model.requests) == before
            and not self._has_run()
            and self.observer.status == "waiting"
        )
        return Cell(is_safe, "refused" if is_safe else f"{done.stdout}{done.stderr}".strip())

    def _answer(self, choice: str, *, runs: bool) -> Cell:
        self._be("waiting")
        if not choice:
            return Cell(None, "")
        began = time.monotonic()
        done = self._tmuxorch("answer", self.program, choice)
        took_s = time.monotonic() - began
        if done.returncode:
            self._leave_dialog()
            return Cell(False, done.stderr.strip())
        for _ in range(MORE_QUESTIONS if runs else 0):  # some ask about directory and command
            self._until(lambda: self._rests("idle") or self._rests("waiting"), TURN_S, "it goes on")
            if self._rests("idle"):
                break
            self._tmuxorch("answer", self.program, choice)
        self._be_idle()
        if self._has_run() is not runs:
            return Cell(False, "it ran" if self._has_run() else "it did not run")
        return Cell(True, f"{took_s:.1f} s")

    def _answer_yes(self) -> Cell:
        self._be_idle()
        self._ask_for("TOOLNOW once more")
        return self._answer(PROGRAMS[self.program].yes, runs=True)

    def _question(self) -> Cell:
        if not PROGRAMS[self.program].asks:
            return Cell(None, "")
        self._be_idle()
        request = self._ask_for("ASKNOW please")
        return self._told("waiting", self._ended_at([request]))

    def _answer_question(self) -> Cell:
        if not PROGRAMS[self.program].asks:
            return Cell(None, "")
        self._be("waiting")
        before = len(self.model.requests)
        done = self._tmuxorch("answer", self.program, "Blue")
        if done.returncode:
            self._leave_dialog()
            return Cell(False, done.stderr.strip())
        self._until(lambda: len(self.model.requests) > before, TURN_S, "its answer did not arrive")
        told = self.model.requests[before].message
        return Cell("Blue" in told and "Red" not in told.rpartition("Blue")[0][-80:], "Blue")

    def _interrupt(self) -> Cell:
        self._be_idle()
        self._slowly("SLOWNOW for the last time")
        self._be("working")
        began = time.monotonic()
        for key in PROGRAMS[self.program].interrupt:
            self._press(key)
            time.sleep(0.3)
        self._until(lambda: not self.model.is_answering, TURN_S, "it went on")
        return self._told("idle", began)

    def _exit(self) -> Cell:
        self._be_idle()
        done = self._tmuxorch("send", self.program, PROGRAMS[self.program].exit)
        self._keep_screen("exit, sent")
        began = time.monotonic()
        try:
            self._until(lambda: not self._is_alive(), SEEN_S, "it lives on")
        except Failed as e:
            return Cell(False, f"({e}; {done.stdout}{done.stderr})".replace("\n", " "))
        took_s = time.monotonic() - began
        return Cell(
            done.returncode == 0, f"{took_s:.1f} s {done.stderr if done.returncode else ''}"
        )

    # -- what they stand on -----------------------------------------------------------------

    def _told(
        self, status: str, since: float, began: float | None = None, until: float | None = None
    ) -> Cell:
        """How long after `since` it is told for good; that must be soon, but for the first turn
        (since it `began`), at whose end some programs try the network for a while."""
        if until is None:
            self._until(lambda: self._first(status, since), SEEN_S, self._not(status))
            time.sleep(HELD_S)
            until = time.monotonic()
        looks = self.observer.between(since, until)
        wrong = [s for s in looks if s.status != status]
        first = self._first(status, wrong[-1].at if wrong else since)
        if first is None or first.at > until:
            raise Failed(self._not(status))
        late_s = first.at - since
        took_s = late_s if began is None else first.at - began
        words = f"{took_s:.1f} s by {first.by}"
        is_late = late_s > LATE_S and began is None
        if is_late:
            words += f" ({', '.join(sorted({f'{s.status} by {s.by}' for s in wrong}))} till then)"
        return Cell(not is_late, words)

    def _first(self, status: str, since: float) -> Sample | None:
        return next(
            (s for s in self.observer.samples if s.at >= since and s.status == status), None
        )

    def _not(self, status: str) -> str:
        last = self.observer.samples[-1] if self.observer.samples else None
        return f"not {status} but {last.status} by {last.by}" if last else "not seen"

    def _sends(self, text: str, mark: str, expected: tuple[str, ...]) -> Cell:
        before = len(self.model.requests)
        began = time.monotonic()
        done = self._tmuxorch("send", self.program, text)
        took_s = time.monotonic() - began
        said = done.stdout.strip()
        if done.returncode or said not in expected:
            return Cell(False, f"{said} {done.stderr.strip()}")
        self._until(lambda: self._heard(mark, before), TURN_S, f"{said}, but did not arrive")
        self._be_idle()
        heard = self._heard(mark, before)
        if heard[0].message.count(mark) != 1:
            return Cell(False, f"{said}, arrived {heard[0].message.count(mark)} times")
        return Cell(True, f"{said}, {took_s:.1f} s")

    def _slowly(self, text: str) -> Request:
        """Have it stream; the request that it makes."""
        before = len(self.model.requests)
        done = self._tmuxorch("send", self.program, text)
        if done.returncode:
            raise Failed(done.stderr.strip())
        self._until(lambda: self._heard(text, before), TURN_S, "its message did not arrive")
        return self._heard(text, before)[-1]

    _ask_for = _slowly

    def _heard(self, mark: str, since: int = 0) -> list[Request]:
        return [r for r in self.model.requests[since:] if mark in r.message]

    def _ended_at(self, requests: list[Request]) -> float:
        last = requests[-1]
        self._until(lambda: last.ended_at is not None, TURN_S, "its answer had no end")
        return last.ended_at or 0.0

    def _be_idle(self) -> None:
        self._be("idle")

    def _be(self, status: str) -> None:
        """Wait until it has been told for a moment to be so."""

        try:
            self._until(lambda: self._rests(status), TURN_S / 2, self._not(status))
        except Failed:
            raise Failed(self._not(status)) from None

    def _rests(self, status: str) -> bool:
        recent = self.observer.between(time.monotonic() - SETTLED_S, time.monotonic())
        is_quiet = status != "idle" or not self.model.is_answering
        return bool(recent) and is_quiet and all(s.status == status for s in recent)

    def _has_run(self) -> bool:
        if self.program == "aider":
            worktree = json.loads(self._tmuxorch("show", "aider", "--json").stdout)["worktree"]
            return Path(worktree, "made.txt").exists()
        return self.lab.made(self.program).exists()

    def _is_alive(self) -> bool:
        found = self._tmuxorch("show", self.program, "--json")
        return found.returncode == 0 and json.loads(found.stdout)["process"]["alive"]

    def _pane(self) -> str:
        return str(
            json.loads(self._tmuxorch("show", self.program, "--json").stdout)["tmux"]["pane"]
        )

    def _press(self, key: str) -> None:
        self._tmux("send-keys", "-t", self._pane(), key)

    def _leave_dialog(self) -> None:
        for key in PROGRAMS[self.program].interrupt:
            self._press(key)

    def _keep_screen(self, situation: str) -> None:
        try:
            drawn = self._tmux("capture-pane", "-p", "-e", "-t", self._pane())
        except (ValueError, KeyError, subprocess.SubprocessError):
            return
        folder = self.lab.folder / "wrong"
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.program}-{situation.replace(' ', '-')}.txt"
        path.write_text(drawn)
        lines = [without_escapes(line).rstrip() for line in drawn.splitlines()]
        self.tell("\n".join([line for line in lines if line][-SHOWN_LINES:]))

    def _tmux(self, *args: str) -> str:
        command = ["tmux", "-u", "-S", self.lab.socket, *args]
        return subprocess.run(
            command, env=self.environ, capture_output=True, text=True, timeout=30, check=False
        ).stdout

    def _tmuxorch(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["tmuxorch", *args],
            cwd=self.lab.repo,
            env=dict(self.environ),
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def _until(self, ask: Callable[[], object], seconds: float, otherwise: str) -> None:
        deadline = time.monotonic() + seconds
        while not ask():
            if time.monotonic() > deadline:
                raise Failed(otherwise)
            time.sleep(0.05)
