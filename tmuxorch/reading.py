"""Reading a file that somebody else may have put there: never waits, never without end.

`tmuxorch ls` imports this module: `os` and its like only.
"""

from __future__ import annotations

import errno
import os
import stat

_CHUNK = 65536


def read_regular(path: str, *, limit: int) -> bytes:
    """All of a regular file, or an OSError that says why not.

    Anything else (a FIFO, a device, a socket) is refused without waiting for it, and so is a
    file of more than `limit` bytes, however it grows meanwhile.
    """
    # Without O_NONBLOCK the open itself would wait for a FIFO's writer.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        whole = b""
        while chunk := os.read(file, _CHUNK):
            whole += chunk
            if len(whole) > limit:
                raise OSError(errno.EFBIG, f"it has more than {limit} bytes", path)
        return whole
    finally:
        os.close(file)


def read_stream(path: str, *, limit: int, silence_s: float) -> bytes:
    """What a file, FIFO or the like gives until its end, but at most one byte over `limit`.

    For what a person names on purpose (`<(command)`); so long a silence is an OSError.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        import select  # here: `ls` reads no streams

        whole = b""
        while len(whole) <= limit:
            # A FIFO that nobody has written to yet would be read as empty.
            if not select.select([file], [], [], silence_s)[0]:
                raise TimeoutError(errno.ETIMEDOUT, f"nothing came for {silence_s:g} s", path)
            chunk = os.read(file, min(_CHUNK, limit + 1 - len(whole)))
            if not chunk:
                break
            whole += chunk
        return whole
    finally:
        os.close(file)
