"""All that is needed after the first frame, imported in one go before any thread starts.

Two threads that import the same modules at once can see each other's half-made ones, so
nothing of tmuxorch is left for them to import first.
"""

from tmuxorch import config
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store import rundir
from tmuxorch.adapters.system import processes
from tmuxorch.service import context
from tmuxorch.service.health import leader
from tmuxorch.service.landing import merging
from tmuxorch.service.removal import removal, restoring
from tmuxorch.service.sweep import sweep
from tmuxorch.service.workers import attaching, creation, launch, renaming, running
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
    "removal", "renaming", "restoring", "rundir", "running", "sweep", "sweep_screen",
    "triage", "write",
]  # fmt: skip
