"""Commands under way: started, watched and ended without ever waiting for one.

Most are forked off this process, which has imported everything already: so a kill at a random
moment meets work, not the start of Python. The others are executed as a person's shell would.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import tests.soak.clock  # noqa: F401 -- first: later imports keep its `time.time`
import tmuxorch.service.health.loop
import tmuxorch.service.landing.merging
import tmuxorch.service.removal.restoring
import tmuxorch.service.sweep.sweep  # noqa: F401 -- imported once, for all that are forked
from tmuxorch.cli.app import VERBS, app
from tmuxorch.cli.main import main

# A forked command that did not come to be tmuxorch, or fell out of it: the soak's own fault.
OWN_FAULT = 70

for _verb in VERBS:
    app.get_command(None, _verb)  # type: ignore[arg-type]


@dataclass
class Command:
    """One call of tmuxorch; `status` is None while it runs, negative for a signal."""

    args: Sequence[str]
    pid: int
    out: Path
    err: Path
    begun: float
    status: int | None = None
    kill_at: float | None = None
    harmed: bool = False
    printed: str = ""
    said: str = ""
    alive_before: dict[int, int] = field(default_factory=dict)
    dead_before: set[int] = field(default_factory=set)

    @property
    def verb(self) -> str:
        return self.args[0]

    def poll(self) -> bool:
        """Whether it has ended; its output is then in `printed` and `said`."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                self.printed, self.said = (_take(path) for path in (self.out, self.err))
        return self.status is not None

    def __str__(self) -> str:
        return f"tmuxorch {' '.join(self.args)} (pid {self.pid})"


def start(
    args: Sequence[str], *, cwd: Path, environ: Mapping[str, str], out: Path, forked: bool
) -> Command:
    """Begin the command; its output goes to `out` and a file beside it."""
    err = out.with_suffix(".err")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _be(args, cwd, environ, out, err, forked)
    return Command(tuple(args), pid, out, err, time.monotonic())


def _take(path: Path) -> str:
    """What the file says, which then goes; nothing if the command died before it made it."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return ""
    path.unlink()
    return text


def _be(
    args: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    out: Path,
    err: Path,
    forked: bool,
) -> NoReturn:
    """Become the command; never returns into the code that forked."""
    status = OWN_FAULT
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(out, flags), 1)
        os.dup2(os.open(err, flags), 2)
        os.closerange(3, 1024)
        os.chdir(cwd)
        if not forked:
            os.execvpe("tmuxorch", ["tmuxorch", *args], dict(environ))
        os.environ.clear()
        os.environ.update(environ)
        streams = [open(fd, mode) for fd, mode in enumerate("rww")]  # noqa: SIM115
        # As at the start of Python: the underlined names keep them open when they are replaced.
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[assignment, misc]
        sys.argv = ["tmuxorch", *args]
        main()
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 0
    except BaseException:  # noqa: BLE001 -- the border: never back into the code that forked
        os.write(2, traceback.format_exc().encode())
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    raise AssertionError("unreachable")
