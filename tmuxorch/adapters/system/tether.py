"""A program that dies with whoever started it, however that one dies.

This file is also a script: it asks the kernel to be killed when its parent ends, and then
becomes the program. Not a `preexec_fn`: Python code between fork and exec may wait for ever for
a lock that another thread of the parent held.

The kernel means the parent's *thread*: start such a program in a thread that lives as long as
the program is to.
"""

import os
import signal
import sys


def tethered(argv: list[str]) -> list[str]:
    """The command that runs `argv` tied to this process; `argv` itself where that cannot be."""
    if sys.platform != "linux":
        return argv
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *argv]


def main() -> None:
    parent, *argv = sys.argv[1:]
    try:
        import _ctypes  # may be missing; the ctypes package costs 2 ms more

        prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        _ctypes.call_function(prctl, (1, int(signal.SIGKILL)))  # PR_SET_PDEATHSIG
    except (ImportError, AttributeError, OSError):
        pass  # its closed input ends it, if a little later
    # Asked after the kernel was: a parent that died before has left us to another.
    if os.getppid() == int(parent):
        os.execv(argv[0], argv)


if __name__ == "__main__":
    main()
