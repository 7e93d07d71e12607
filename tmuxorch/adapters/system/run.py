"""The one function that runs another program and waits for it."""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

# A program that has ended may leave a child (a hook's daemon) that holds its output open
# for ever: this long a silence after the end counts as the end of the output.
LINGER_S = 0.05
# git takes back its lock files and half-made worktrees on TERM; KILL leaves them.
GRACE_S = 1.0
CHUNK = 65536


@dataclass(frozen=True, slots=True)
class Completed:
    returncode: int
    stdout: bytes
    stderr: bytes


class Timeout(Exception):
    """It did not happen in time; a program that was under way has been ended."""


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Completed:
    """Run `argv` in a session of its own and collect its output.

    With `on_output`, stdout and stderr go there merged as they come, and together make
    `stdout` of the result. On a timeout or any exception (Ctrl-C too) the whole process
    group is ended first. A missing program raises FileNotFoundError.
    """
    deadline = time.monotonic() + timeout_s
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if on_output is None else subprocess.STDOUT,
        # A session, not only a group: without a terminal ssh and the like fail at once,
        # where a background group would be stopped on its first read.
        start_new_session=True,
        bufsize=0,
    )
    try:
        stdout, stderr = _exchange(process, stdin, deadline, on_output)
        _wait(process, deadline)
    except (Timeout, subprocess.TimeoutExpired):
        _end_group(process)
        raise Timeout(f"{argv[0]} did not end within {timeout_s:g} s") from None
    except BaseException:
        _end_group(process)
        raise
    finally:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    return Completed(process.returncode, stdout, stderr)


@contextmanager
def alongside(work: Callable[[], object]) -> Iterator[None]:
    """Do `work` while the block runs; what it raises comes out at the block's end."""
    failures: list[BaseException] = []

    def do() -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 -- raised again in the caller's thread
            failures.append(failure)

    thread = threading.Thread(target=do)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failures:
        raise failures[0]


def _exchange(
    process: subprocess.Popen[bytes],
    stdin: bytes | None,
    deadline: float,
    on_output: Callable[[bytes], None] | None,
) -> tuple[bytes, bytes]:
    """Feed and read the pipes until they close, or until the program has ended and is silent."""
    collected = (bytearray(), bytearray())
    unsent = memoryview(stdin or b"")
    with selectors.DefaultSelector() as selector:
        for pipe, buffer in zip((process.stdout, process.stderr), collected, strict=True):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, buffer)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            ended = process.poll() is not None
            left_s = deadline - time.monotonic()
            if left_s <= 0 and not ended:
                raise Timeout
            ready = selector.select(min(LINGER_S, left_s))
            if ended and (not ready or left_s <= 0):
                break
            for key, event in ready:
                if event == selectors.EVENT_WRITE:
                    unsent = _feed(key.fd, unsent)
                    chunk = bytes(unsent[:1])
                elif chunk := os.read(key.fd, CHUNK):
                    key.data.extend(chunk)
                    if on_output is not None:
                        on_output(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
    return bytes(collected[0]), bytes(collected[1])


def _feed(fd: int, unsent: memoryview) -> memoryview:
    """Write what fits; a reader that has gone needs no more."""
    try:
        return unsent[os.write(fd, unsent[:CHUNK]) :]
    except BlockingIOError:
        return unsent
    except BrokenPipeError:
        return unsent[:0]


def _wait(process: subprocess.Popen[bytes], deadline: float) -> None:
    """Wait for the end; by pidfd where there is one, since `wait(timeout)` naps 0.5 ms and more."""
    with suppress(AttributeError, OSError):
        fd = os.pidfd_open(process.pid)
        try:
            select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        finally:
            os.close(fd)
    process.wait(max(0.0, deadline - time.monotonic()))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """TERM, a moment to tidy up, KILL; does nothing to a group whose leader was reaped."""
    if process.returncode is not None or process.stdout is None:
        return
    try:
        _signal_group(process.pid, signal.SIGTERM)
        # Waits for the end of the output, not for the process: while it is not reaped, its
        # number cannot become another group's.
        deadline = time.monotonic() + GRACE_S
        while not process.stdout.closed and (left_s := deadline - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left_s)[0]:
                break
            if not os.read(process.stdout.fileno(), CHUNK):
                break
    finally:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS: a zombie's group is EPERM
        os.killpg(group, number)
