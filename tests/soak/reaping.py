"""How orphans ended: this process adopts what loses its parent, a tmux server too.

Only so can a server that crashed by itself be told from one that somebody ended.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36
CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS})


def adopt_orphans() -> None:
    """Become the parent of whatever is left below; only Linux knows how."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap() -> list[int]:
    """Bury all dead children; the pids of tmux servers that crashed by themselves.

    To be called only while no command and no other child of ours is being waited for.
    """
    crashed = []
    with suppress(ChildProcessError):
        while (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            is_server = _name(dead.si_pid) == "tmux: server"
            os.waitpid(dead.si_pid, 0)
            if is_server and dead.si_code != os.CLD_EXITED and dead.si_status in CRASHES:
                crashed.append(dead.si_pid)
    return crashed


def _name(pid: int) -> str:
    """What a zombie was called."""
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""
