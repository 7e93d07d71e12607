"""The table of accuracy: a row for each situation, a column for each program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents_lab.trial import Trial


def markdown(trials: Sequence[Trial], versions: Mapping[str, str], day: str) -> str:
    names = [trial.program for trial in trials]
    rows = [["", *names], ["---"] * (len(names) + 1), ["version", *(versions[n] for n in names)]]
    situations = list(dict.fromkeys(s for trial in trials for s in trial.cells))
    for situation in situations:
        cells = (trial.cells.get(situation) for trial in trials)
        rows.append([situation, *("" if cell is None else str(cell) for cell in cells)])
    lines = ["| " + " | ".join(_cell(word) for word in row) + " |" for row in rows]
    return f"As of {day}:\n\n" + "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
