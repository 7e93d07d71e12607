"""How git is called: as a quiet question, or as the person would."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from tmuxorch.adapters.git.lockfiles import describe_lock
from tmuxorch.adapters.system import procfs
from tmuxorch.adapters.system.run import Completed, Timeout, run
from tmuxorch.errors import GitFailed, GitKilled, GitTooOld, TmuxorchError

MINIMUM_VERSION = (2, 34)
_INSTALL = f"install git {'.'.join(map(str, MINIMUM_VERSION))} or newer"
LOOK_S = 120.0
CHECKOUT_S = 3600.0
# Somebody ended a git (the kernel does when memory is short): it has not answered.
TRIES = 3
# In the environment of every git that we start: whose it is, should we die before it does.
CALLER = "TMUXORCH_CALLER"
# What a person sets on purpose. The rest (GIT_DIR and its like, set by hooks and by `git -c`)
# would send `git -C` elsewhere.
KEPT_VARIABLES = (
    "GIT_ASKPASS", "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_KEY_", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_VALUE_",
    "GIT_EXEC_PATH", "GIT_HTTP_", "GIT_LFS_", "GIT_PROXY_", "GIT_SSH", "GIT_SSL_",
)  # fmt: skip
# Our own questions run none of the repository's programs, and fetch nothing that is missing.
QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
UNASKED = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",  # git before 2.45 does not know the one above
}


def find_program() -> str:
    """The git to run, by absolute path."""
    program = shutil.which("git")
    if program is None:
        raise GitFailed(f"git was not found on the PATH; {_INSTALL}")
    return os.path.abspath(program)


def check_version() -> str:
    """What `git --version` says, or `GitTooOld`."""
    said = git("/", "--version").stdout.decode(errors="replace").strip()
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers and (int(numbers[1]), int(numbers[2])) < MINIMUM_VERSION:
        raise GitTooOld(f"{said} is too old; {_INSTALL}")
    return said


def git(
    directory: str,
    *arguments: str,
    ok: Collection[int] = (0,),
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = LOOK_S,
) -> Completed:
    """Ask git in `directory`, with no hook and no lock it can do without; if killed, once more.

    Another status than `ok`, a timeout and a missing git raise GitFailed; GitKilled where a
    killed one stands behind it, as when a lock that it left is in the way.
    """
    quiet = {**UNASKED, **(env or {})}
    failed: type[GitFailed] = GitFailed
    for _ in range(TRIES):
        done = call_git(
            directory, [*QUIET, *arguments], env=quiet, stdin=stdin, timeout_s=timeout_s
        )
        if done.returncode in ok:
            return done
        if done.returncode >= 0:
            break
        failed = GitKilled
    said = done.stderr.decode(errors="replace")
    why = f"{describe_end(done)}{describe_lock(said)}"
    raise failed(f"git {arguments[0]} failed in {directory}: {why}", stderr=said)


def call_git(
    directory: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    stdin: bytes | None = None,
    on_output: Callable[[bytes], None] | None = None,
) -> Completed:
    """Run git as the person would, hooks and all, whatever its status; no prompts."""
    try:
        return run(
            ("git", "-C", directory, *arguments),
            env={**environment(), **env},
            timeout_s=timeout_s,
            stdin=stdin,
            on_output=on_output,
        )
    except FileNotFoundError:
        raise GitFailed(f"git was not found on the PATH; {_INSTALL}") from None
    except Timeout as late:
        raise GitFailed(f"git in {directory} was stopped: {late}") from None


def _mark() -> dict[str, str]:
    with suppress(TmuxorchError):
        return {CALLER: str(procfs.identify_self())}
    return {}


def environment() -> dict[str, str]:
    """Ours for a git: nothing that would send it elsewhere, no prompts, and whose it is."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(KEPT_VARIABLES)
    }
    return {**kept, "GIT_TERMINAL_PROMPT": "0", **_mark()}


def failure(done: Completed, words: str) -> GitFailed:
    """The error for a git that failed, or that was killed, for a person to read as `words`."""
    said = done.stderr.decode(errors="replace")
    return (GitKilled if done.returncode < 0 else GitFailed)(words, stderr=said)


def describe_end(done: Completed) -> str:
    """Why it failed: what it said, or what killed it."""
    if done.returncode < 0:
        with suppress(ValueError):
            return f"it was killed ({signal.Signals(-done.returncode).name})"
        return f"it was killed (signal {-done.returncode})"
    return last_words(done.stderr.decode(errors="replace"))


def last_words(said: str) -> str:
    """The line of git's errors that says why: the last fatal one, not the hints after it."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    blunt = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    words = (blunt or lines or ["it did not say why"])[-1]
    return words.removeprefix("fatal: ").removeprefix("error: ")
