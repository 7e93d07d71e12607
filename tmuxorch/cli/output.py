"""The one door to the terminal: what is written to stdout and stderr passes through it.

Text is shown (see `core.literal`), wherever it goes: a log of stderr is read on a terminal too.
Colours pass only where they are painted on purpose. `tmuxorch ls` imports this module.
"""

from __future__ import annotations

import codecs
import io
import os
import sys

from tmuxorch.core.literal import screened, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO


class Door(io.TextIOWrapper):
    """A stream on which everything is shown and nothing obeyed."""

    behind: TextIO  # the stream it stands before, which would close both if it were let go

    def write(self, text: str, /) -> int:
        super().write(shown(text))
        return len(text)

    def paint(self, text: str) -> None:
        """Write text whose colours shall be seen."""
        super().write(screened(text))


def open_door() -> None:
    """From now on whatever this process prints goes through the door.

    `sys.__stdout__` and `sys.__stderr__` stay as they were: the screen paints on them itself.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)  # None if the descriptor was closed
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Door):
            stream.flush()
            door = Door(
                stream.buffer,
                encoding=stream.encoding,
                errors="backslashreplace",
                line_buffering=name == "stderr" or stream.isatty(),
                write_through=stream.write_through,
            )
            door.behind = stream
            setattr(sys, name, door)


def wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ


def paint(text: str) -> None:
    """Our own colours on stdout, if it wants any."""
    stream = sys.stdout
    if isinstance(stream, Door) and wants_colour(stream):
        stream.paint(text)
    else:
        stream.write(text)


def write_exactly(data: bytes) -> None:
    """Bytes on stdout as they are; on a terminal with their colours, and all else shown."""
    stream = sys.stdout
    if stream.isatty():
        paint(data.decode("utf-8", "surrogateescape"))
        if wants_colour(stream) and b"\x1b" in data:
            paint("\x1b[0m")
    else:
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()


def teller() -> Callable[[bytes], None]:
    """Takes another program's output in pieces as they come, and tells it on stderr."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def tell(data: bytes) -> None:
        # A carriage return would let it write over what stands there.
        text = decoder.decode(data).replace("\r\n", "\n").replace("\r", "\n")
        sys.stderr.write(text)
        sys.stderr.flush()

    return tell


def ask(question: str) -> bool:
    """Yes or no from the person at the terminal; anything but a yes is a no."""
    sys.stderr.write(f"{question} [y/N]: ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        sys.stderr.write("\n")
    return answer.strip().lower() in ("y", "yes")


def print_json(value: Any) -> None:
    """ASCII, so that every control is JSON's own escape, on a terminal as in a pipe."""
    import json

    sys.stdout.write(json.dumps(value, indent=1) + "\n")
