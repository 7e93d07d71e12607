"""The question on an agent's screen, and the answers that it offers."""

# ruff: noqa: RUF001 -- the marks are those that the agents draw

from __future__ import annotations

import re
from collections.abc import Sequence

from tmuxorch.model import Choice, Question

LINE_MAX = 1000
REACH = 30  # lines from the bottom in which answers are looked for
LINES_MAX = 14  # of a question's text; what stands higher is what it is about, or older
_NUMBERED = re.compile(r"(?:[❯›●>]\s*)?(?:[☐☑◻◼○◉✔]\s*)?(\d{1,2})\.\s+(?:[☐☑◻◼○◉✔]\s*)?(\S.*)")
_LETTERED = re.compile(r"\((\w)\)([\w']+(?: [\w']+)*)")
_SIDE_BY_SIDE = re.compile(r"Allow once\s{2,}\S")
_KEY_HINT = re.compile(r"ctrl\+|enter |esc |tab |[⇆↑↓]")
# A rule or the frame of a dialog; of those within a dialog the line starts with its side.
_EDGE = re.compile(r"[─━═╌╭╔┌]{2}")
_SIDES = ("┃", "│")
_ONLY_FRAME = re.compile(r"[\s─━═╌╭╮╰╯┌┐└┘│┃╹▀]*")
# What stands beside a dialog that has no right edge.
_BESIDE = re.compile(r"(?<=\S) {8,}| {40,}")
_TRANSCRIPT = re.compile(r"\s?[•●✦▣✻■›❯>] ")


def read_question(lines: Sequence[str], line: str) -> Question:
    """The lowest question of the screen; only its one known line if no choices are found."""
    rows = [row[:LINE_MAX].rstrip().encode("utf-8", "replace").decode() for row in lines]
    while rows and not rows[-1]:
        rows.pop()
    plain = [_unframed(row) for row in rows]
    for number in range(len(rows) - 1, max(-1, len(rows) - REACH), -1):
        if len(letters := _LETTERED.findall(plain[number])) > 1:
            before = plain[number].partition("(" + letters[0][0] + ")")[0].strip()
            text = [*_text_above(rows, plain, number), before]
            return _question(text, [Choice(key.lower(), key + rest) for key, rest in letters])
        if _SIDE_BY_SIDE.match(plain[number]):
            words = [w for w in re.split(r"\s{2,}", plain[number]) if not _KEY_HINT.match(w)]
            choices = [Choice(str(n), word) for n, word in enumerate(words, 1)]
            return _question(_text_above(rows, plain, number), choices)
        if _NUMBERED.fullmatch(plain[number]):
            first, choices = _list_ending_at(plain, number)
            return _question(_text_above(rows, plain, first), choices)
    return Question(" ".join(line.split()).encode("utf-8", "replace").decode())


def _list_ending_at(plain: Sequence[str], end: int) -> tuple[int, list[Choice]]:
    """Where the numbered list begins whose last item is there, and its items from there on."""
    first, wanted = end, None
    choices: list[Choice] = []
    for number in range(end, -1, -1):
        found = _NUMBERED.fullmatch(plain[number])
        if not found or (wanted is not None and int(found[1]) != wanted):
            continue
        first, wanted = number, int(found[1]) - 1
        choices.insert(0, Choice(found[1], found[2].strip()))
        if wanted == 0:
            break
    return first, choices


def _text_above(rows: Sequence[str], plain: Sequence[str], end: int) -> list[str]:
    found: list[str] = []
    is_framed = rows[end].lstrip()[:1] in _SIDES
    for number in range(end - 1, -1, -1):
        row = rows[number]
        is_over = _EDGE.match(row.lstrip()) or _TRANSCRIPT.match(row)
        if is_over or len(found) == LINES_MAX or (is_framed and row.lstrip()[:1] not in _SIDES):
            break
        if plain[number] and not _ONLY_FRAME.fullmatch(row):
            found.insert(0, plain[number])
    return found


def _question(text: Sequence[str], choices: Sequence[Choice]) -> Question:
    return Question("\n".join(line for line in text if line), tuple(choices))


def _unframed(row: str) -> str:
    if row.lstrip().startswith("┃"):
        row = _BESIDE.split(row)[0]
    return row.strip(" \t\xa0│┃")
