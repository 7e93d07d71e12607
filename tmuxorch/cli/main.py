"""The `tmuxorch` command.

`ls` is polled by scripts and status bars, `report` is called at every use of a tool, and the
screen is to be there at once, so their plain spellings skip the argument parser and all that it
imports; everything else goes to the full command line.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FAST_LS = {"--json", "--all"}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status."""
    args = sys.argv[1:] if argv is None else list(argv)
    from tmuxorch.cli.border import guarded
    from tmuxorch.cli.output import open_door

    open_door()
    if args[:1] == ["ls"] and _FAST_LS.issuperset(args[1:]):
        from tmuxorch.cli.ls import list_agents

        _leave(
            guarded(lambda: list_agents(as_json="--json" in args, everywhere="--all" in args), args)
        )
    if args[:1] == ["report"] and len(args) == 2 and not args[1].startswith("-"):
        from tmuxorch.cli.report import report_own

        _leave(guarded(lambda: report_own(args[1]), args))

    if not args and sys.stdin.isatty() and sys.stdout.isatty():
        from tmuxorch.cli.screen import open_screen

        sys.exit(guarded(open_screen, args))

    def full() -> int:
        from tmuxorch.cli.app import run

        return run(args)

    sys.exit(guarded(full, args))


def _leave(status: int) -> None:
    """End at once: there is nothing to tidy up, and Python's own farewell takes a while."""
    sys.stderr.flush()
    os._exit(status)
