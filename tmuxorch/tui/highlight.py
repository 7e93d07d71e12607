"""Colours for code without waiting for them: plain until the lexing process has answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from tmuxorch.tui.lexing import Piece, lexer_for

CODE_MAX = 400  # characters; a longer line was not written by hand
WAITING_MAX = 500  # lines; what was scrolled past is not needed any more
REMEMBERED_MAX = 10_000
DEATHS_MAX = 5  # of the process; then somebody does this on purpose

Pieces = tuple[Piece, ...]


class Highlighter:
    """Hands lines to a process that may die of one, and remembers what it said.

    A line that the process did not survive makes its whole file plain, and so many of those
    everything.
    """

    def __init__(self, tell: Callable[[], object] = lambda: None) -> None:
        self._tell = tell
        self._known: dict[tuple[str, str], Pieces] = {}
        self._waiting: deque[tuple[str, str, str]] = deque(maxlen=WAITING_MAX)
        self._plain: set[str] = set()
        self.deaths = 0
        self._news = threading.Condition()
        self._ended = False
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def pieces(self, path: str, code: str) -> Pieces:
        """The code in pieces as far as they are known now; `tell` is called when there is more."""
        lexer = lexer_for(path)
        if lexer is None or len(code) > CODE_MAX or not code.strip():
            return ((code, ""),)
        known = self._known.get((lexer, code))
        if known is None and not self._ended:
            self._ask(lexer, code, path)
        return known or ((code, ""),)

    def close(self) -> None:
        """End thread and process."""
        with self._news:
            self._ended = True
            self._news.notify()
        if (process := self._process) is not None:
            process.kill()
        if self._thread is not None:
            self._thread.join(5.0)

    def _ask(self, lexer: str, code: str, path: str) -> None:
        with self._news:
            if path in self._plain or self.deaths >= DEATHS_MAX:
                return
            if (lexer, code, path) not in self._waiting:
                self._waiting.append((lexer, code, path))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="colours", daemon=True)
                self._thread.start()
            self._news.notify()

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._end_process()

    def _work(self) -> None:
        answered = False
        while True:
            with self._news:
                while not self._waiting and not self._ended:
                    if answered:
                        break
                    self._news.wait()
                if self._ended:
                    return
                # The newest first: that is what is on the screen.
                lexer, code, path = self._waiting.pop() if self._waiting else ("", "", "")
            if not lexer:
                answered = False
                self._tell()
                continue
            if path in self._plain:
                continue
            pieces = self._exchange(lexer, code)
            if pieces is None:
                self._note_death(path)
                continue
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[lexer, code] = pieces
            answered = True

    def _note_death(self, path: str) -> None:
        self._end_process()
        with self._news:
            self.deaths += 1
            self._plain.add(path)
            if self.deaths >= DEATHS_MAX:
                self._waiting.clear()

    def _exchange(self, lexer: str, code: str) -> Pieces | None:
        """What the process says of a line; None if it died of it."""
        try:
            process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([lexer, code]).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            return tuple((part, word) for part, word in json.loads(answer))
        except (OSError, ValueError):
            return None

    def _start(self) -> subprocess.Popen[bytes]:
        # The same modules as here, wherever these came from; nothing else of the environment.
        environ = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-X", "utf8", "-m", "tmuxorch.tui.lexing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environ,
            start_new_session=True,
        )
        return self._process

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
