"""Cheap looks at single processes through /proc and pidfds.

`tmuxorch ls` imports this module, so it needs nothing that `model` has not loaded
already; systems without /proc are served by `portable`, imported only there.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from functools import cache

from tmuxorch.adapters.system.small_files import read_file
from tmuxorch.core.observation import Alive, Dead, ProcessFact, Unknown
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import ProcessId

LINUX = sys.platform == "linux"

# Positions in /proc/PID/stat, counted from the field after the command's name.
STATE, PARENT, GROUP, SESSION, TERMINAL, FLAGS, THREADS, TICKS = 0, 1, 2, 3, 4, 6, 17, 19
ENV_START, ENV_END = 47, 48


def identify(pid: int) -> ProcessId | None:
    """The identity of the process that runs under `pid` now; None if none does.

    Raises TmuxorchError if that cannot be found out.
    """
    if not LINUX:
        from tmuxorch.adapters.system import portable

        return portable.identify(pid)
    from tmuxorch.adapters.system.machine import read_machine

    boot, namespace = read_here()
    try:
        while True:
            inode = read_inode(pid)
            _, stat = read_stat(pid)
            if inode == read_inode(pid):  # so the ticks in between are of the same process
                break
    except ProcessLookupError:
        return None
    except OSError as error:
        raise TmuxorchError(f"process {pid} cannot be looked at: {error.strerror}") from error
    if has_ended(stat):
        return None
    return ProcessId(boot, namespace, pid, int(stat[TICKS]), inode, read_machine())


def identify_self() -> ProcessId:
    me = identify(os.getpid())
    if me is None:
        raise TmuxorchError("this command cannot find itself in the process table")
    return me


def observe_process(process: ProcessId) -> ProcessFact:
    """Whether this very process still runs.

    One of another pid namespace is Unknown, not Dead: seen from a container, an agent that
    runs on the host has no pid at all. So is one of another machine that shares our files.
    """
    if not LINUX:
        from tmuxorch.adapters.system import portable

        return portable.observe_process(process)
    try:
        return _observe(process)
    except ProcessLookupError:
        return Dead("no such process")
    except TmuxorchError as error:
        return Unknown(error.message)
    except OSError as error:
        return Unknown(f"/proc/{process.pid}/stat: {error.strerror}")


def _observe(process: ProcessId) -> ProcessFact:
    boot, namespace = read_here()
    if process.boot != boot:
        return _observe_another_boot(process)
    if process.namespace != namespace:
        return Unknown("it was started in another pid namespace (container)")
    _, stat = read_stat(process.pid)
    inode = read_inode(process.pid) if process.inode else 0
    if int(stat[TICKS]) != process.ticks or (inode and inode != process.inode):
        return Dead("its pid belongs to another process now")
    return Dead("it is a zombie") if has_ended(stat) else Alive(process)


def _observe_another_boot(process: ProcessId) -> ProcessFact:
    from tmuxorch.adapters.system.machine import read_machine

    if process.boot in ("-", "any"):
        return Unknown("it was started where processes cannot be identified exactly")
    if not process.machine:
        return Unknown("it was started before a reboot or on another machine: nobody noted which")
    if process.machine != read_machine():
        return Unknown("it was started on another machine")
    return Dead("the machine was rebooted")


def is_here(process: ProcessId) -> bool:
    """Whether its pid is a number of the table that we look into."""
    if LINUX:
        return (process.boot, process.namespace) == read_here()
    me = identify_self()
    return (process.boot, process.machine) == (me.boot, me.machine)


def same_process(one: ProcessId, other: ProcessId) -> bool:
    """Whether two identities are of one process; what nobody could read is no difference."""
    return (
        (one.boot, one.namespace, one.pid, one.ticks)
        == (other.boot, other.namespace, other.pid, other.ticks)
        and (one.inode == other.inode or 0 in (one.inode, other.inode))
        and (one.machine == other.machine or "" in (one.machine, other.machine))
    )


def complete(process: ProcessId) -> ProcessId:
    """What a shim said of a process, as we would say it; it has no means to where /proc is not."""
    if LINUX:
        return process
    from tmuxorch.adapters.system import portable

    return portable.complete(process)


def age_s(pid: int) -> float | None:
    """How long the process has run, by the clock that nobody sets; None if it does not, or if
    that is unknown."""
    if not LINUX:
        return None
    try:
        _, stat = read_stat(pid)
    except OSError:
        return None
    if has_ended(stat):
        return None
    ticks = int(stat[TICKS])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


@cache
def read_here() -> tuple[str, int]:
    """The boot id, and the inode of the pid namespace that our pids are numbers of."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            raise TmuxorchError("/proc shows another pid namespace than this command runs in")
        boot = read_file("/proc/sys/kernel/random/boot_id").decode().strip()
        return boot, os.stat("/proc/self/ns/pid").st_ino
    except OSError as error:
        raise TmuxorchError(f"{error.filename}: {error.strerror}") from error


def read_stat(pid: int) -> tuple[bytes, list[bytes]]:
    """The command's name and the fields after it.

    Raises ProcessLookupError only if there is no such process, another OSError if that
    is not certain.
    """
    try:
        text = read_file(f"/proc/{pid}/stat")
    except FileNotFoundError:
        os.kill(pid, 0)  # ProcessLookupError, unless `hidepid` hides a living process
        raise
    # The name is whatever the program likes, brackets and spaces too.
    name, _, fields = text.partition(b"(")[2].rpartition(b") ")
    return name, fields.split()


def read_inode(pid: int) -> int:
    """The inode of the process's pidfd, which no later process gets; 0 without pidfds.

    Before Linux 6.9 all pidfds share one inode, which does no harm.
    """
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, AttributeError) as error:
        number = getattr(error, "errno", None)
        if number in (errno.EINVAL, errno.ENOENT):  # the number of a thread, not of a process
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH)) from error
        if number in (errno.ESRCH, errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        return 0
    try:
        return os.fstat(pidfd).st_ino
    finally:
        os.close(pidfd)


def has_ended(stat: list[bytes]) -> bool:
    """Zombies have; one that still has threads lost only its first, the others work on."""
    return stat[STATE] in (b"Z", b"X", b"x") and int(stat[THREADS]) <= 1
