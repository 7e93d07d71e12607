"""A wall clock that can be set: what every tmuxorch of a world reads as the time.

Importing this module replaces `time.time`; it must come before whatever keeps a reference to
that. The offset lies in a file, so that a watcher meets the step in the middle of its life. The
kernel's clock (files' times, git, the shims) stays: a machine's clocks need not agree.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

VARIABLE = "SOAK_CLOCK"
_true, _true_ns = time.time, time.time_ns


def _offset_s() -> float:
    """What the file says that the environment names; 0 without one."""
    path = os.environ.get(VARIABLE)
    if not path:
        return 0.0
    try:
        with open(path, "rb") as file:
            return float(file.read())
    except (OSError, ValueError):
        return 0.0


time.time = lambda: _true() + _offset_s()
time.time_ns = lambda: _true_ns() + int(_offset_s() * 1e9)


def install(directory: Path) -> None:
    """Make a directory that, on PYTHONPATH, gives every Python this clock."""
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(Path(__file__).read_text())


def set_offset(path: Path, offset_s: float) -> None:
    """Step to this far from the true time, for all at once."""
    part = path.with_suffix(".part")
    part.write_text(f"{offset_s}")
    os.replace(part, path)
