"""The directory that a shim and the rest of tmuxorch share for one agent.

The creator writes `launch` and `task`, the shim answers with `started` and `exit`, and
whoever ends the agent keeps its last `screen` there. The formats are the shim's.
"""

from __future__ import annotations

import os
import select
import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tmuxorch import paths, shim
from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.machine import read_machine
from tmuxorch.core.observation import Ended, Started
from tmuxorch.model import AgentId, Exit, ProcessId
from tmuxorch.reading import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WORD_MAX_BYTES = 65536
LAUNCH_MAX_BYTES = 16_000_000  # a task may stand in the command


def run_dir(state_dir: str, agent_id: AgentId) -> str:
    return os.path.join(state_dir, "run", agent_id)


def prepare(
    directory: str,
    *,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    task: str,
    stdin: str | None,
    grace_s: float,
    run: int,
) -> None:
    """Write what the shim needs; traces of an earlier run are cleared.

    `run` counts the agent's starts: the shim says it again, so that words of an earlier run
    are known for what they are whatever the clock showed.
    """
    _make_private(directory)
    for stale in ("started", "exit", "ready", "over"):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, stale))
    _write(task_file(directory), task.encode())
    pairs = [("arg", os.fsencode(arg)) for arg in argv]
    pairs += [("env", os.fsencode(f"{name}={value}")) for name, value in env.items()]
    pairs += [("cwd", os.fsencode(cwd)), ("grace_ms", b"%d" % round(grace_s * 1000))]
    # The shim runs where we do: a tmux socket does not reach to another machine.
    pairs += [("run", b"%d" % run), ("machine", read_machine().encode())]
    if stdin is not None:
        pairs.append(("stdin", os.fsencode(stdin)))
    _write(os.path.join(directory, "launch"), shim.encode_launch(pairs))
    os.mkfifo(os.path.join(directory, "ready"), 0o600)


@contextmanager
def listening(directory: str) -> Iterator[int]:
    """Hold the reading end of the FIFO that the shim pokes, so that no poke is missed."""
    fd = os.open(os.path.join(directory, "ready"), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def wait_poke(fd: int, timeout_s: float) -> bool:
    """Wait until the shim has written a file; False if the time is over first."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    poked = bool(poller.poll(max(0, timeout_s) * 1000))
    if poked:
        os.read(fd, 4096)
    return poked


def read_started(directory: str, *, run: int | None = None) -> Started | None:
    """The shim's word that the agent runs; with `run` only if it is about that one."""
    fields = _read_fields(os.path.join(directory, "started"))
    if fields is None:
        return None
    process, keeper = (ProcessId.parse(fields[key]) for key in ("agent", "shim"))
    said = Started(
        procfs.complete(process), procfs.complete(keeper), float(fields["at"]), _run(fields)
    )
    return said if run is None or said.run in (None, run) else None


def read_exit(directory: str, *, run: int | None = None) -> Ended | None:
    """The shim's word how the agent ended; with `run` only if it is about that one."""
    fields = _read_fields(os.path.join(directory, "exit"))
    if fields is None:
        return None
    how, error = None, None
    if "code" in fields:
        how = Exit(int(fields["code"]), None)
    elif "signal" in fields:
        how = Exit(None, int(fields["signal"]))
    else:
        error = fields["error"]
    at = float(fields.get("at", time.time()))
    lived_s = float(fields["lived_s"]) if "lived_s" in fields else None
    said = Ended(how, error, at, _run(fields), lived_s)
    return said if run is None or said.run in (None, run) else None


def _run(fields: dict[str, str]) -> int | None:
    return int(fields["run"]) if "run" in fields else None


def note_over(directory: str, *, run: int) -> None:
    """Note that every process of that run is known to be dead."""
    _make_private(directory)
    _write(os.path.join(directory, "over"), b"run %d\n" % run)


def is_over(directory: str, *, run: int) -> bool:
    """Whether every process of that run was once seen dead, from wherever that could be seen."""
    with suppress(OSError, ValueError):
        return _run(_read_fields(os.path.join(directory, "over")) or {}) == run
    return False


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """What the agent was started with: its command, and the environment as its person had it."""

    argv: tuple[str, ...]
    env: dict[str, str]


def read_launch(directory: str) -> LaunchRecord | None:
    try:
        data = read_regular(os.path.join(directory, "launch"), limit=LAUNCH_MAX_BYTES)
        pairs = [(key, os.fsdecode(value)) for key, value in shim.decode_launch(data)]
    except (OSError, ValueError):
        return None
    env = dict(value.partition("=")[::2] for key, value in pairs if key == "env")
    return LaunchRecord(tuple(value for key, value in pairs if key == "arg"), env)


def read_task(directory: str) -> str | None:
    try:
        return read_regular(task_file(directory), limit=LAUNCH_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def task_file(directory: str) -> str:
    return os.path.join(directory, "task")


def save_screen(directory: str, text: str) -> None:
    _make_private(directory)
    _write(os.path.join(directory, "screen"), text.encode("utf-8", "surrogateescape"))


def read_screen(directory: str) -> str | None:
    try:
        data = read_regular(os.path.join(directory, "screen"), limit=LAUNCH_MAX_BYTES)
    except OSError:
        return None
    return data.decode("utf-8", "replace")


def remove(directory: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _make_private(directory: str) -> None:
    for path in (os.path.dirname(directory), directory):
        paths.ensure_private(path)


def _write(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as f:
        f.write(data)
    os.replace(temporary, path)


def _read_fields(path: str) -> dict[str, str] | None:
    try:
        data = read_regular(path, limit=WORD_MAX_BYTES)
    except FileNotFoundError:
        return None
    lines = data.decode("utf-8", "surrogateescape").splitlines()
    return dict(line.partition(" ")[::2] for line in lines)
