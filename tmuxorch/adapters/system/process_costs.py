"""What processes have used of the machine, by psutil."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from tmuxorch.model import ProcessId


@dataclass(frozen=True, slots=True)
class ProcessCost:
    """Resident memory now, processor time since its start."""

    memory_bytes: int
    processor_s: float


def measure_process(process: ProcessId) -> ProcessCost | None:
    """None if it cannot be measured: it has ended, or is not ours to look at."""
    try:
        found = psutil.Process(process.pid)
        memory = found.memory_info().rss
        times = found.cpu_times()
    except psutil.Error:
        return None
    return ProcessCost(memory, times.user + times.system)
