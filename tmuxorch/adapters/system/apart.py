"""A question to a library that waits without end, asked in a process of its own.

What it imports, keeps open or never gives back goes with that process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

from tmuxorch.adapters.system.run import Timeout, run
from tmuxorch.core.observation import Unknown

LOOK_S = 20.0


def ask_apart(
    module: str, *arguments: str, env: Mapping[str, str], timeout_s: float = LOOK_S
) -> dict[str, str] | Unknown:
    """What `answer` in that module's own process says; whatever goes wrong there is Unknown."""
    # Neither the directory we stand in nor that of the module may lend it other libraries.
    argv = (sys.executable, "-P", "-m", module, *arguments)
    try:
        done = run(argv, timeout_s=timeout_s, cwd="/", env=env)
    except Timeout:
        return Unknown(f"it did not answer within {timeout_s:g} s")
    try:
        if done.returncode == 0:
            said: dict[str, str] = json.loads(done.stdout)
            return said
    except ValueError:
        pass
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return Unknown(lines[-1] if lines else f"it ended with status {done.returncode}")


def answer(look: Callable[..., dict[str, str]]) -> None:
    """Be that process: print what `look` says of the arguments."""
    json.dump(look(*sys.argv[1:]), sys.stdout)
