"""Whose is a marked pane: the shim's that we put there, or a person's who took it over.

`respawn-pane` keeps a pane's id and its mark, and changes what runs in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxorch.adapters.system import process_table, procfs
from tmuxorch.core.observation import Alive
from tmuxorch.errors import TmuxorchError

if TYPE_CHECKING:
    from tmuxorch.adapters.tmux.server import Pane
    from tmuxorch.model import ProcessId


def is_held(pane: Pane, shim: ProcessId | None, run_dir: str) -> bool:
    """Whether the pane's root process is this very shim, or that shim's remains.

    Without a recorded shim, whether it is one that was started for the run directory.
    """
    if shim is None:
        return any(run_dir in argument for argument in process_table.read_arguments(pane.pid))
    if pane.pid != shim.pid:
        return False
    if isinstance(procfs.observe_process(shim), Alive):
        return True
    try:
        return procfs.identify(pane.pid) is None  # else another process has its number now
    except TmuxorchError:
        return False
