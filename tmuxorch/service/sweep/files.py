"""Files of ours that nobody needs: trash, run directories, half-written archives, locks."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress

from tmuxorch.adapters.git.deletion import delete_directory
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system import procfs
from tmuxorch.core.literal import pasteable
from tmuxorch.core.observation import Dead
from tmuxorch.errors import sure
from tmuxorch.model import Agent, AgentId
from tmuxorch.service.context import Context
from tmuxorch.service.sweep.orphan import Disposal, Look, Orphan, Thing, busy, size_of

DAY_S = 86_400.0


def observe_safe(look: Look) -> Iterator[Orphan]:
    """What cannot hold anything of value, so that the watcher may clear it by itself."""
    yield from _trash(look)
    yield from _run_dirs(look)
    yield from _half_written(look)


def observe(look: Look) -> Iterator[Orphan]:
    yield from observe_safe(look)
    yield from _archives(look)
    yield from _locks(look)


def _file(path: str, reason: str, action: Disposal = Disposal.REMOVE, **more: str) -> Orphan:
    return Orphan(Thing.FILE, reason, action, path=path, bytes=size_of(path), **more)  # type: ignore[arg-type]


def _trash(look: Look) -> Iterator[Orphan]:
    """Worktrees that a removal has saved and recorded, and did not come to delete."""
    for entry in look.trash:
        # What a restore that failed had brought back is named after the save it came from.
        agent_id = AgentId(entry.name.partition(".")[0])
        if agent_id in look.agents:
            continue
        if agent_id not in look.removed:
            why = "no history tells whose worktree this was"
            hint = pasteable(["rm", "-r", entry.path])
            yield _file(entry.path, why, Disposal.KEEP, command=hint)
        elif users := look.users_of(entry.path):
            yield _file(entry.path, f"it was removed, but {busy(users)}", Disposal.KEEP)
        else:
            removed = look.ctx.store.history_entry(agent_id)
            name = removed.task.name if removed else agent_id
            yield _file(entry.path, f"the worktree of {name} was saved and removed")


def _run_dirs(look: Look) -> Iterator[Orphan]:
    for path in _below(look.ctx, "run"):
        name = os.path.basename(path)
        if not look.is_recorded(name):
            if not look.serving(name) and _is_over(path):
                yield _file(path, "no worker has this run directory")
            continue
        for file in _names(path):
            pid = file.removesuffix(".tmp").rpartition(".")[2]
            if file.endswith(".tmp") and pid.isdecimal() and not _is_running(int(pid)):
                yield _file(os.path.join(path, file), "its writer died before it was whole")


def _half_written(look: Look) -> Iterator[Orphan]:
    for path in _below(look.ctx, "archive"):
        agent = look.agents.get(AgentId(os.path.basename(path).partition(".")[0]))
        if path.endswith(".part") and not _owner_lives(agent):
            yield _file(path, "its writer died before it was whole")


def _archives(look: Look) -> Iterator[Orphan]:
    """Saves hold somebody's files: without a record they are shown, never deleted."""
    for path in _below(look.ctx, "archive"):
        agent_id = AgentId(os.path.basename(path).partition(".")[0])
        known = agent_id in look.removed or look.is_recorded(agent_id)
        if not path.endswith(".part") and not known:
            why = "no history tells whose files these are"
            yield _file(path, why, Disposal.KEEP, command=pasteable(["rm", "-r", path]))


def _locks(look: Look) -> Iterator[Orphan]:
    """Locks of repositories that nothing of ours mentions any more."""
    names = {hashlib.sha256(os.fsencode(root)).hexdigest()[:16] for root in look.known_roots}
    for path in _below(look.ctx, "locks"):
        name = os.path.basename(path)
        digest = name.removeprefix("repo-").partition(".")[0]
        if name.startswith("repo-") and digest not in names and _is_older(path, DAY_S):
            yield _file(path, "no worker's repository has this lock")


def _is_over(run_dir: str) -> bool:
    """Whether the processes that its shim spoke of are known to be dead."""
    try:
        started = rundir.read_started(run_dir)
    except (KeyError, ValueError):
        return True  # nobody can be found by what is not an identity
    if started is None:
        return True
    facts = map(procfs.observe_process, (started.shim, started.process))
    return all(isinstance(fact, Dead) for fact in facts)


def _owner_lives(agent: Agent | None) -> bool:
    if agent is None or agent.owner is None:
        return False
    return not isinstance(procfs.observe_process(agent.owner), Dead)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _is_older(path: str, seconds: float) -> bool:
    return time.time() - os.lstat(path).st_mtime > seconds


def _below(ctx: Context, directory: str) -> list[str]:
    path = os.path.join(ctx.state_dir, directory)
    return [os.path.join(path, name) for name in _names(path)]


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def clear(orphan: Orphan) -> None:
    """Delete the file or directory; what has gone meanwhile is no failure."""
    path = sure(orphan.path, "a file was found by its path")
    if os.path.basename(os.path.dirname(path)) == "run":
        rundir.remove(path)
    elif os.path.isdir(path):
        delete_directory(path)
    elif path.endswith(".lock") and "/locks/" in path:
        _unlink_lock(path)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _unlink_lock(path: str) -> None:
    """Delete the lock while holding it; whoever waits for it notices that it went."""
    with suppress(FileNotFoundError, BlockingIOError):
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(file)
