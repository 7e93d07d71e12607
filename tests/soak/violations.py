"""A promise that was broken, and what is kept of it for a look."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

KEPT_OF_A_KIND = 3


class Violation(Exception):
    """The first broken promises of a round: (kind, what was seen) each."""

    def __init__(self, found: Sequence[tuple[str, str]]) -> None:
        super().__init__("\n".join(f"{kind}: {text}" for kind, text in found))
        self.found = list(found)

    def lines(self) -> list[str]:
        return [f"{kind}: {text}" for kind, text in self.found]


class Evidence:
    """The directory of all that was found."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.counts: Counter[str] = Counter()

    def keep(self, title: str, violation: Violation, steps: Sequence[str], world: Path) -> Path:
        """Write down the steps of the round and copy the world, unless there are many such."""
        kinds = sorted({kind for kind, _ in violation.found})
        self.counts.update(kinds)
        place = self.directory / f"{title}-{kinds[0]}"
        place.mkdir(parents=True, exist_ok=True)
        text = "\n".join([f"{title}", f"world: {world}", "", str(violation), "", *steps, ""])
        (place / "report.txt").write_text(text, errors="replace")
        if min(self.counts[kind] for kind in kinds) <= KEPT_OF_A_KIND:
            # What comes and goes meanwhile is no reason to keep nothing.
            subprocess.run(["cp", "-a", world, place / "world"], capture_output=True, check=False)
        return place
