"""Whose process is it, and ending all of an agent's: never a stranger's.

A process is only ever signalled through a pidfd, after a look has shown that the pid is
still that of the process that was meant.
"""

from __future__ import annotations

import math
import os
import select
import signal
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.process_row import Row, Table
from tmuxorch.adapters.system.process_table import ancestors, read_command, read_table
from tmuxorch.adapters.system.writers import find_written
from tmuxorch.core.observation import Alive, Dead, Unknown
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import ProcessId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

POLL_S = 0.01  # between two looks where there is no pidfd to wait on
KILL_WAIT_S = 0.5  # after KILL, before looking again who is there


@dataclass(frozen=True, slots=True)
class Member:
    """A process with what a person needs to recognise it, and why it is listed."""

    process: ProcessId
    command: str
    why: str

    def __str__(self) -> str:
        return f"{self.process.pid} ({self.command})"


def orphans_since(shim: ProcessId | None) -> int | None:
    """From which tick on orphans of the agent may be about; None while its shim adopts them all.

    Where there are no subreapers (macOS) they may be at any time.
    """
    if shim is None or (procfs.LINUX and isinstance(procfs.observe_process(shim), Alive)):
        return None
    return shim.ticks


def find_family(
    *,
    agent_id: str,
    roots: tuple[ProcessId, ...],
    worktree: str | None,
    since_ticks: int | None,
    never: Set[int] = frozenset(),
) -> tuple[Member, ...]:
    """Every process that belongs to the agent, each with the reason.

    `roots` are its recorded processes (shim, agent), dead or alive. Orphans in `worktree`
    are looked for if `since_ticks` says when the agent started. Left out, whatever speaks
    for them: pid 1, this process and its ancestors, `never`, what carries another agent's
    marker, and tmux servers with all that hangs only below them.
    """
    table = read_table()
    excluded = {1, *never, *ancestors(table, os.getpid())}
    rows = [
        row
        for row in table.values()
        if not (row.ended or row.is_tmux_server or row.pid in excluded)
        and row.marker in (None, agent_id)
    ]
    untaken = _untaken(table, roots)
    present = untaken & table.keys()
    marked = _marked(table, agent_id)
    orphans: set[int] = set()
    if worktree is not None and since_ticks is not None and untaken:
        orphans = _orphans(table, rows, untaken, os.path.realpath(worktree), since_ticks)

    family: dict[int, str] = {}
    size = -1
    while size < len(family):
        size = len(family)
        # The number of a dead leader is not given away while its session or group lives, so
        # one proven member proves the others.
        numbers = {n for pid in family for n in (table[pid].session, table[pid].group)}
        leaders = present | (untaken & numbers)
        for row in rows:
            if row.pid in family:
                continue
            if row.pid in present:
                family[row.pid] = "is a recorded process of the agent"
            elif row.pid in marked:
                family[row.pid] = "carries the agent's marker"
            elif row.parent in family and table[row.parent].id.ticks <= row.id.ticks:
                family[row.pid] = f"was started by {row.parent}"
            elif row.session in leaders or row.session in family:
                family[row.pid] = f"is in the session of {row.session}"
            elif row.group in leaders:
                family[row.pid] = f"is in the process group of {row.group}"
            elif row.pid in orphans:
                family[row.pid] = "was left behind in the agent's worktree"
    return tuple(_member(table[pid], why) for pid, why in family.items())


def observe_users_of(path: str, *, excluding: Iterable[int] = ()) -> tuple[Member, ...]:
    """Who stands in a directory: facts to show a person, never a reason to end anything."""
    path = os.path.realpath(path)
    excluded = {os.getpid(), *excluding}
    return tuple(
        _member(row, f"works in {row.cwd}")
        for row in read_table().values()
        if not row.ended and row.pid not in excluded and _is_in(row, path)
    )


def observe_writers_below(path: str) -> tuple[Member, ...]:
    """Who has a file below `path` open or mapped for writing; nobody where there is no /proc.

    What another user's process has is hidden from all but root, so it does not count.
    """
    path = os.path.realpath(path)
    return tuple(
        _member(row, f"has {found}")
        for row in (read_table().values() if procfs.LINUX else ())
        if not row.ended and row.pid != os.getpid()
        if (found := find_written(row.pid, path))
    )


def is_ancestor_of_us(pid: int) -> bool:
    """Whether this command runs inside that process, and would end with it."""
    return pid in ancestors(read_table(), os.getpid())


def send_signal(target: ProcessId, signum: int) -> bool:
    """Signal this very process; False if it has already ended.

    Raises TmuxorchError if it may not be signalled, or if nobody can tell who it is now.
    """
    with _pidfd(target.pid) as pidfd:
        # Looked at after the pidfd was opened: alive now, so it is what was opened.
        fact = procfs.observe_process(target)
        if isinstance(fact, Dead):
            return False
        if isinstance(fact, Unknown):
            raise TmuxorchError(f"process {target.pid} was not signalled: {fact.why}")
        try:
            if pidfd is None:
                os.kill(target.pid, signum)
            else:
                signal.pidfd_send_signal(pidfd, signum)
        except ProcessLookupError:
            return False
        except PermissionError:
            raise TmuxorchError(
                f"process {target.pid} was not signalled: it belongs to another user"
            ) from None
        return True


def wait_dead(target: ProcessId, timeout_s: float) -> bool:
    """Wait until this very process has ended; False if that is not certain in time."""
    until = time.monotonic() + timeout_s
    with _pidfd(target.pid) as pidfd:
        while not isinstance(fact := procfs.observe_process(target), Dead):
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            if pidfd is None or not isinstance(fact, Alive):
                time.sleep(min(left_s, POLL_S))
            else:
                poll = select.poll()
                poll.register(pidfd, select.POLLIN)
                poll.poll(math.ceil(left_s * 1000))
    return True


def end_family(
    *,
    agent_id: str,
    roots: tuple[ProcessId, ...],
    worktree: str | None,
    since_ticks: int | None,
    never: Set[int] = frozenset(),
    grace_s: float = 2.0,
    deadline_s: float = 10.0,
) -> tuple[Member, ...]:
    """End every process of the agent and tell which there were; may be repeated.

    The first of `roots`, the shim, is asked alone and gets a grace of its own, for it ends
    its descendants itself. Then all get TERM and a grace, and whoever is still found gets
    KILL until two looks in a row find nobody. Raises TmuxorchError naming the survivors, or
    a root that is not known to be dead in the end: that nobody was found is no proof.
    """
    seen: dict[ProcessId, Member] = {}

    def look() -> tuple[Member, ...]:
        members = find_family(
            agent_id=agent_id,
            roots=(*roots, *seen),  # the evidence may end with the parent, what it proved stays
            worktree=worktree,
            since_ticks=since_ticks,
            never=never,
        )
        for member in members:
            seen.setdefault(member.process, member)
        return members

    shim = [m for m in look() if procfs.same_process(m.process, roots[0])] if roots else []
    if shim:
        _signal_all(shim, signal.SIGTERM, signal.SIGCONT)
        _wait_all(shim, grace_s)
    if members := look():
        _signal_all(members, signal.SIGTERM, signal.SIGCONT)
        _wait_all(members, grace_s)

    deadline = time.monotonic() + deadline_s
    refused: dict[ProcessId, str] = {}
    quiet = 0
    while quiet < 2:
        members = look()
        if not members:
            quiet += 1
            continue
        quiet = 0
        if time.monotonic() > deadline or all(m.process in refused for m in members):
            raise TmuxorchError(_blame(agent_id, members, refused))
        refused = _signal_all(members, signal.SIGKILL)
        _wait_all([m for m in members if m.process not in refused], KILL_WAIT_S)
    for root in roots:
        _check_dead(root)
    return tuple(seen.values())


def _check_dead(process: ProcessId) -> None:
    match procfs.observe_process(process):
        case Alive():
            raise TmuxorchError(f"process {process.pid} still runs; end it by hand and try again")
        case Unknown(why):
            raise TmuxorchError(f"whether process {process.pid} has ended is not known: {why}")


def _untaken(table: Table, roots: tuple[ProcessId, ...]) -> set[int]:
    """The pids of those roots that nobody has taken since; a zombie still has its own."""
    return {
        root.pid
        for root in roots
        if procfs.is_here(root)
        and (root.pid not in table or procfs.same_process(table[root.pid].id, root))
    }


def _marked(table: Table, agent_id: str) -> set[int]:
    """Who carries the marker, but not from a tmux server that was itself started with it.

    Each pane of such a server inherits the marker, other agents' and the user's own too.
    """
    marked = {row.pid for row in table.values() if row.marker == agent_id}
    servers = {pid for pid in marked if table[pid].is_tmux_server}
    return {pid for pid in marked if servers.isdisjoint(ancestors(table, pid))}


def _orphans(
    table: Table, rows: list[Row], roots: Set[int], worktree: str, since_ticks: int
) -> set[int]:
    """Who lost parent and marker in the worktree; a person's own programs must never be here.

    Those have a terminal or a living parent, or, if they detached like a graphical editor,
    an environment with a HOME and without our marker.
    """
    # Orphans go to pid 1 or to the nearest subreaper above the tmux server that had the pane.
    servers = [row.pid for row in table.values() if row.is_tmux_server]
    above = {p for pid in (os.getpid(), *servers) for p in list(ancestors(table, pid))[1:]}
    adopters = {1} | {pid for pid in above if not table[pid].on_terminal}
    return {
        row.pid
        for row in rows
        if row.parent in adopters
        and row.uid == os.geteuid()
        and not row.on_terminal
        and row.id.ticks >= since_ticks
        and _is_in(row, worktree)
        and (row.is_wiped or row.session in roots)
    }


def _is_in(row: Row, path: str) -> bool:
    return row.cwd is not None and (row.cwd == path or row.cwd.startswith(path + os.sep))


def _member(row: Row, why: str) -> Member:
    return Member(row.id, read_command(row), why)


@contextmanager
def _pidfd(pid: int) -> Iterator[int | None]:
    """A pidfd; None if there is no such process, or no pidfd to be had."""
    pidfd = None
    with suppress(OSError, AttributeError):
        pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        if pidfd is not None:
            os.close(pidfd)


def _signal_all(members: Iterable[Member], *signums: int) -> dict[ProcessId, str]:
    """Signal each; gives those that could not be, and why."""
    refused = {}
    for member in members:
        try:
            for signum in signums:
                send_signal(member.process, signum)
        except TmuxorchError as error:
            refused[member.process] = error.message
    return refused


def _wait_all(members: Iterable[Member], timeout_s: float) -> None:
    until = time.monotonic() + timeout_s
    for member in members:
        wait_dead(member.process, until - time.monotonic())


def _blame(agent_id: str, members: Sequence[Member], refused: dict[ProcessId, str]) -> str:
    survivors = "; ".join(
        f"{member}: {refused.get(member.process, 'it did not end when killed')}"
        for member in members
    )
    return (
        f"processes of agent {agent_id} are still running, end them by hand and try again: "
        f"{survivors}"
    )
