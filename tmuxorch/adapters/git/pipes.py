"""FIFOs where git looks for its own files: it would wait for ever for somebody to write."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tmuxorch.adapters.system.treewalk import walk

# A git that takes longer than this may be waiting; most have ended long before.
PATIENCE_S = 0.5
AGAIN_S = 0.1
WRITE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
# Names that git reads wherever in a worktree they are; nobody else waits for these. To tell a
# repository inside from a directory it reads its HEAD as well.
READ_BY_GIT = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")


@contextmanager
def unblocking(top: str) -> Iterator[None]:
    """While the block runs, give a git that reads a FIFO of its own below `top` the end of it.

    To git such a file is then an empty one.
    """
    over = threading.Event()
    thread = threading.Thread(target=_unblock, args=(top, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _unblock(top: str, over: threading.Event) -> None:
    if over.wait(PATIENCE_S):
        return
    found = list(_pipes(top, over))
    while found and not over.wait(AGAIN_S):
        for path in found:
            # Refused unless somebody has it open for reading, and waits.
            with suppress(OSError):
                os.close(os.open(path, WRITE))


def _pipes(top: str, over: threading.Event) -> Iterator[str]:
    with suppress(OSError):
        for entry in walk(top):
            if over.is_set():
                return
            name = entry.path.rpartition("/")[2]
            in_repository = name == "HEAD" and "/.git/" in f"/{entry.path}"
            if stat.S_ISFIFO(entry.stat.st_mode) and (name in READ_BY_GIT or in_repository):
                yield f"{top}/{entry.path}"


def holds_pipes(own: str) -> bool:
    """Whether there is a FIFO or a device in a git directory, or a link to one."""
    for entry in walk(own):
        mode = entry.stat.st_mode
        if stat.S_ISLNK(mode):
            try:
                mode = os.stat(f"{own}/{entry.path}").st_mode
            except OSError:
                continue
        if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            return True
    return False
