"""All that is needed after the first frame, imported in one go before any thread starts.

Two threads that import the same modules at once can see each other's half-made ones, so
nothing of tmuxorch is left for them to import first.
"""

from tmuxorch import config
from tmuxorch.service import context, listing, repositories
from tmuxorch.service.health import deaths, leader, panes
from tmuxorch.service.landing import merging
from tmuxorch.service.removal import removal, restoring, work
from tmuxorch.service.sweep import sweep
from tmuxorch.service.workers import attaching, creation, inspection, launch, renaming, running
from tmuxorch.tui import notices, panels, stake_lines
from tmuxorch.tui.change_counter import ChangeCounter
from tmuxorch.tui.panel_reader import PanelReader
from tmuxorch.tui.screens import (
    confirmation,
    orphan_list,
    page,
    removed_list,
    triage,
    worker_form,
    write,
)
from tmuxorch.tui.screens import help as help_screen
from tmuxorch.tui.snapshot_reader import SnapshotReader

__all__ = [
    "ChangeCounter", "PanelReader", "SnapshotReader", "attaching", "config", "confirmation",
    "context", "creation", "deaths", "help_screen", "inspection", "launch", "leader", "listing",
    "merging", "notices", "orphan_list", "page", "panels", "panes", "removal", "removed_list",
    "renaming", "repositories", "restoring", "running", "stake_lines", "sweep", "triage", "work",
    "worker_form", "write",
]  # fmt: skip
