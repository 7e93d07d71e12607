"""The process table as /proc shows it, without the code that is under test."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

# A shim's own environment has no marker; its last argument is its run directory.
SHIM = re.compile(r" -I -S -c .*/run/([0-9a-f]{12}) ?$", re.DOTALL)
WANTED = (b"TMUXORCH_STATE_DIR", b"TMUXORCH_AGENT_ID")


@dataclass(frozen=True)
class Process:
    """One process at one moment; `agent` and `state` are what its environment says."""

    pid: int
    parent: int
    started: int
    name: str
    command: str
    agent: str | None
    state: str | None

    @property
    def is_shim(self) -> bool:
        return SHIM.search(self.command) is not None

    @property
    def owner(self) -> str | None:
        """The agent that it belongs to: by its environment, or as the shim of its run directory."""
        shim = SHIM.search(self.command)
        return self.agent or (shim.group(1) if shim else None)


def scan() -> list[Process]:
    """All living processes that can be looked at; zombies are dead."""
    return [found for pid in _pids() if (found := look(pid)) is not None]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def look(pid: int) -> Process | None:
    """The process under this pid; None if there is none, or only its zombie."""
    try:
        stat = _read(pid, "stat")
        name, rest = stat[stat.index(b"(") + 1 :].rsplit(b") ", 1)
        fields = rest.split()
        if fields[0] in (b"Z", b"X"):
            return None
        command = _read(pid, "cmdline").replace(b"\0", b" ")
        environ = dict(
            line.split(b"=", 1)
            for line in _read(pid, "environ").split(b"\0")
            if line.startswith(WANTED) and b"=" in line
        )
    except (OSError, ValueError):
        return None
    state, agent = (environ.get(key) for key in WANTED)
    return Process(
        pid,
        int(fields[1]),
        int(fields[19]),
        os.fsdecode(name),
        os.fsdecode(command),
        os.fsdecode(agent) if agent else None,
        os.fsdecode(state) if state else None,
    )


def _read(pid: int, file: str) -> bytes:
    with open(f"/proc/{pid}/{file}", "rb") as opened:
        return opened.read()


def children(pid: int) -> Iterator[int]:
    """Everything below the process, as far as it can be seen."""
    todo = [pid]
    while todo:
        parent = todo.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                for word in _read(parent, f"task/{task}/children").split():
                    yield int(word)
                    todo.append(int(word))


def is_fork(pid: int) -> bool:
    """Whether it still is what its parent is, and has executed nothing yet."""
    found = look(pid)
    above = look(found.parent) if found is not None else None
    return found is not None and above is not None and found.command == above.command


def kill(pid: int) -> str | None:
    """SIGKILL the very process that has this pid now; its name, or None if it was dead."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        found = look(pid)
        if found is None:
            return None
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    except OSError:
        return None
    finally:
        os.close(fd)
    return found.name
