"""The looks of `procfs` and `process_table` where there is no /proc (macOS), by psutil.

Start times are absolute there, in hundredths of a second since 1970, so they differ
across reboots as well and no boot id is needed. (`boot_time()` would be a bad one: it
moves when the clock is set, and every agent would look dead.) A machine that shares our
files has such times as well, so there the machine tells.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

import psutil

from tmuxorch.adapters.system.machine import read_machine
from tmuxorch.adapters.system.process_row import Row, Table, find_marker
from tmuxorch.core.observation import Alive, Dead, ProcessFact, Unknown
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import ProcessId

BOOT = "any"
NO_BOOT = "-"  # in what a shim reports
ROUNDING = 200  # start times of one process, by two ways of asking, in hundredths of a second
CLOCK = psutil.boot_time()


def identify(pid: int) -> ProcessId | None:
    try:
        process = psutil.Process(pid)
        return None if _has_ended(process) else _identity(process)
    except psutil.NoSuchProcess:
        return None
    except (psutil.Error, OSError) as error:
        raise TmuxorchError(f"process {pid} cannot be looked at: {error}") from error


def complete(process: ProcessId) -> ProcessId:
    """The identity of a process of which a shim knew only that it ran at a certain time.

    While it lived its pid was nobody else's: what has the pid now and is not younger than
    the report is that very process.
    """
    if process.boot != NO_BOOT or process.machine != read_machine():
        return process
    now = identify(process.pid)
    if now is not None and now.ticks <= process.ticks + ROUNDING:
        return now
    return replace(process, boot=BOOT)


def observe_process(process: ProcessId) -> ProcessFact:
    if process.boot != BOOT:
        return Unknown("it was started on another system")
    if process.machine != read_machine():
        return Unknown("it was started on another machine")
    try:
        now = psutil.Process(process.pid)
        if _identity(now) != process:
            # psutil >= 7.1 corrects start times by what the clock was set since its import.
            if abs(psutil.boot_time() - CLOCK) >= 1:
                return Unknown("the clock was set while this command was running")
            return Dead("its pid belongs to another process now")
        return Dead("it is a zombie") if _has_ended(now) else Alive(process)
    except psutil.NoSuchProcess:
        return Dead("no such process")
    except (psutil.Error, OSError) as error:
        return Unknown(str(error))


def read_table() -> Table:
    table: Table = {}
    for process in psutil.process_iter():
        try:
            table[process.pid] = _row(process)
        except (psutil.Error, ProcessLookupError, PermissionError):
            continue  # ended meanwhile, or another user's
    return table


def read_command(pid: int) -> str:
    try:
        return "\0".join(psutil.Process(pid).cmdline())
    except (psutil.Error, OSError):
        return ""


def _row(process: psutil.Process) -> Row:
    with process.oneshot():
        row = Row(
            id=_identity(process),
            name=process.name(),
            parent=process.ppid(),
            group=os.getpgid(process.pid),
            session=os.getsid(process.pid),
            uid=process.uids().effective,
            on_terminal=process.terminal() is not None,
            ended=_has_ended(process),
        )
    if not row.ended and os.geteuid() in (0, row.uid):
        # macOS gives no variables of a protected program: none at all is no evidence.
        with suppress(psutil.Error, OSError):
            pairs = process.environ().items()
            environ = b"".join(os.fsencode(f"{name}={value}\0") for name, value in pairs)
            row.environ = environ or None
            row.marker = find_marker(environ)
            row.cwd = process.cwd()
    return row


def _identity(process: psutil.Process) -> ProcessId:
    ticks = int(process.create_time() * 100)
    return ProcessId(BOOT, 0, process.pid, ticks, 0, read_machine())


def _has_ended(process: psutil.Process) -> bool:
    return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
