"""All that is needed after the first frame, imported in one go before any thread starts.

Two threads that import the same modules at once can see each other's half-made ones, so
nothing of tmuxorch is left for them to import first.
"""

from tmuxorch import config
from tmuxorch.adapters import git, processes, rundir
from tmuxorch.service import (
    attaching,
    context,
    creation,
    launch,
    leader,
    merging,
    removal,
    renaming,
    restoring,
    running,
    stake,
    sweep,
)
from tmuxorch.tui import looks
from tmuxorch.tui.looker import Looker
from tmuxorch.tui.reader import Reader
from tmuxorch.tui.screens import help as help_screen
from tmuxorch.tui.screens import history, new, triage, write
from tmuxorch.tui.screens import sweep as sweep_screen
from tmuxorch.tui.tally import Tally

__all__ = [
    "Looker", "Reader", "Tally", "attaching", "config", "context", "creation", "git",
    "help_screen", "history", "launch", "leader", "looks", "merging", "new", "processes",
    "removal", "renaming", "restoring", "rundir", "running", "stake", "sweep", "sweep_screen",
    "triage", "write",
]  # fmt: skip
