"""The `tmuxorch` command.

`ls` is polled by scripts and status bars, so its plain spellings skip the argument parser
and all that it imports; everything else goes to the full command line.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FAST_LS = {"--json", "--all"}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status."""
    args = sys.argv[1:] if argv is None else list(argv)
    from tmuxorch.cli.border import guarded

    if args[:1] == ["ls"] and _FAST_LS.issuperset(args[1:]):
        from tmuxorch.cli.ls import list_agents

        sys.exit(
            guarded(lambda: list_agents(as_json="--json" in args, everywhere="--all" in args), args)
        )

    def full() -> int:
        from tmuxorch.cli.app import run

        return run(args)

    sys.exit(guarded(full, args))
