"""The end of the terminal, which ends the screen however it comes.

The kernel tells only the group in front. With a shell lent the terminal that is the shell's, so
that nothing would tell us: reads from a terminal that is gone return at once for ever, and
writes fail, until nothing moves any more and no signal is heard.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

GRACE_S = 3.0  # for the screen to close by itself
LOOK_S = 1.0  # where a terminal cannot be waited for
HUNG_UP = 129


@contextmanager
def ending_with_terminal(end: Callable[[], object], finish: Callable[[], object]) -> Iterator[None]:
    """Call `end` if the terminal goes away in the block; if that does not end it, leave by force.

    `finish` is waited for before that.
    """
    closed = threading.Event()

    def watch() -> None:
        _wait_for_hangup()
        if closed.is_set():
            return
        _let_go()
        end()
        if not closed.wait(GRACE_S):
            finish()
            os._exit(HUNG_UP)

    if os.isatty(0):
        threading.Thread(target=watch, name="hangup", daemon=True).start()
    try:
        yield
    finally:
        closed.set()


def _wait_for_hangup() -> None:
    if sys.platform == "darwin":  # its poll knows no terminals
        while os.isatty(0):
            threading.Event().wait(LOOK_S)
        return
    poll = select.poll()
    poll.register(0, 0)  # that it hung up is told unasked
    poll.poll()


def _let_go() -> None:
    """Put in its place a silence to read from and a void to write to."""
    with suppress(OSError):
        silence, _ = os.pipe()  # its other end stays open
        void = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 0)
        os.dup2(void, 1)
        os.dup2(void, 2)
