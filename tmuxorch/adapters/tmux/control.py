"""One long-lived `tmux -C` channel: queries without starting a program, and wake-ups.

A server that does not answer costs the time-out once: the question stays open, and until
its answer has come every further one fails at once, so nothing waits and nothing queues up.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress

from tmuxorch.adapters.system.tether import tethered
from tmuxorch.adapters.tmux import joining
from tmuxorch.adapters.tmux.server import HOME_SESSION, failure, find_program, outside_environment
from tmuxorch.adapters.tmux.sockets import check_socket
from tmuxorch.errors import TmuxFailed, TmuxNoServer, TmuxTimeout, sure

CHUNK = 1 << 20
# What tells that a window may have gone; the rest of what tmux announces is of no use here.
_CLOSINGS = (b"%window-close", b"%unlinked-window-close", b"%exit")


class Control:
    """A client of the server behind one socket; it neither sizes windows nor gets their output."""

    def __init__(self, socket: str, *, timeout_s: float = 1.0) -> None:
        check_socket(socket)
        self.socket = socket
        self.timeout_s = timeout_s
        self._buffer = b""
        self._begun: bytes | None = None  # what the end of the answer being read will say
        self._lines: list[bytes] = []
        self._due = 1  # answers; the attach itself is answered too
        self._late = False
        self._woken = False
        self.is_gone = False
        self._output, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(
                tethered(
                    [
                        *(sys.executable, "-I", "-S", os.path.abspath(joining.__file__)),
                        # -E: the home session keeps its environment, whoever looks.
                        *(find_program(), socket, "attach-session", "-E"),
                        *("-f", "no-output,ignore-size", "-t", f"={HOME_SESSION}:"),
                    ]
                ),
                env=outside_environment(),
                stdin=subprocess.PIPE,
                stdout=theirs,
                stderr=subprocess.STDOUT,
                # The server writes to this pipe itself, and one that ends waits until it has
                # written all. While the client holds the reading end too, it can: also after
                # our death, for as long as the client needs to notice it.
                pass_fds=[self._output],
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(theirs)
        self._input = sure(self._process.stdin, "it was started with a pipe")
        os.set_blocking(self._input.fileno(), False)
        self._poll = select.poll()
        self._poll.register(self.fileno(), select.POLLIN)

    def fileno(self) -> int:
        """Readable when tmux has announced something, or has gone."""
        return self._output

    def run(self, *args: str) -> str:
        """One tmux command's output; TmuxTimeout, TmuxNoServer and TmuxFailed as elsewhere."""
        while self._due:  # the attach, and what came too late to be of use
            ok, lines = self._await(0.0 if self._late else self.timeout_s)
            if not ok:
                raise failure("attach-session", self.socket, _text(lines))
        self._write(" ".join(map(_quoted, args)).encode() + b"\n")
        self._due += 1
        ok, lines = self._await(self.timeout_s)
        if not ok:
            raise failure(args[0], self.socket, _text(lines))
        return _text(lines) + "\n" if lines else ""

    def drain(self) -> bool:
        """Read what was announced; whether a window may have closed."""
        try:
            while self._read(0.0):
                continue
        except TmuxNoServer:
            self.is_gone = True
            return True
        woken, self._woken = self._woken, False
        return woken

    def close(self) -> None:
        """Detach; the server and its windows do not notice."""
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def _await(self, timeout_s: float) -> tuple[bool, list[bytes]]:
        """The next answer that is due; TmuxTimeout leaves it due."""
        deadline = time.monotonic() + timeout_s
        while (answer := self._next()) is None:
            left_s = deadline - time.monotonic()
            if not self._read(max(0.0, left_s)) and left_s <= 0:
                self._late = True
                raise TmuxTimeout(
                    f"tmux on {self.socket} did not answer within {self.timeout_s:g} s; "
                    "nothing is known about its windows until it does"
                )
        self._due -= 1
        self._late = self._late and self._due > 0
        return answer

    def _read(self, timeout_s: float) -> bool:
        try:
            if not self._poll.poll(timeout_s * 1000):
                return False
            chunk = os.read(self.fileno(), CHUNK)
        except (OSError, ValueError) as e:
            raise TmuxNoServer(f"the tmux server on {self.socket} has gone ({e})") from e
        if not chunk:
            last = self._buffer.decode("utf-8", "replace").strip()
            raise TmuxNoServer(f"the tmux server on {self.socket} has gone ({last})", stderr=last)
        self._buffer += chunk
        self._woken = self._woken or any(word in chunk for word in _CLOSINGS)
        return True

    def _next(self) -> tuple[bool, list[bytes]] | None:
        """The next whole answer in what was read; announcements between answers are dropped."""
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if not newline:
                return None
            self._buffer = rest
            if self._begun is None:
                if line.startswith(b"%begin "):
                    # Time and number: a line of a captured screen cannot pass for the end.
                    self._begun, self._lines = line.removeprefix(b"%begin "), []
                elif not line.startswith(b"%"):
                    raise failure("attach-session", self.socket, _text([line]))
            elif line in (b"%end " + self._begun, b"%error " + self._begun):
                self._begun = None
                return line.startswith(b"%end"), self._lines
            else:
                self._lines.append(line)

    def _write(self, data: bytes) -> None:
        try:
            os.write(self._input.fileno(), data)
        except (OSError, ValueError) as e:
            raise TmuxNoServer(f"the tmux server on {self.socket} has gone ({e})") from e


def _text(lines: list[bytes]) -> str:
    return b"\n".join(lines).decode("utf-8", "surrogateescape")


def _quoted(word: str) -> str:
    """One argument for tmux's own parser, in which nothing is special inside single quotes."""
    if "\n" in word:
        raise TmuxFailed("a newline cannot be sent over a control channel")
    return "'" + word.replace("'", "'\\''") + "'"
