"""The question on an agent's screen, and the answers that it offers."""

# ruff: noqa: RUF001 -- the marks are those that the agents draw

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tmuxorch.core.inputbox import backgrounds, without_escapes
from tmuxorch.model import Choice, Question

LINE_MAX = 1000
REACH = 30  # lines from the bottom in which answers are looked for
LINES_MAX = 14  # of a question's text; what stands higher is what it is about, or older
_NUMBERED = re.compile(r"(?:[❯›●>]\s*)?(?:[☐☑◻◼○◉✔]\s*)?(\d{1,2})\.\s+(?:[☐☑◻◼○◉✔]\s*)?(\S.*)")
_TICK = re.compile(r"[☐☑◻◼○◉✔]|\[[ xX✔]\]")
_LETTERED = re.compile(r"\((\w)\)([\w']+(?: [\w']+)*)")
_ACROSS = re.compile(r"[\s│┃]*(?:Allow once\s{2,}\S|\S.*\s{2,}⇆ )")
_MARKED = re.compile(r"[\s│┃]*[❯›●>]")
_KEY_HINT = re.compile(r"ctrl\+|enter |esc |tab |[⇆↑↓]")
# A rule or the frame of a dialog; of those within a dialog the line starts with its side.
_EDGE = re.compile(r"[─━═╌╭╔┌]{2}")
_SIDES = ("┃", "│")
_ONLY_FRAME = re.compile(r"[\s─━═╌╭╮╰╯┌┐└┘│┃╹▀]*")
# What stands beside a dialog that has no right edge.
_BESIDE = re.compile(r"(?<=\S) {8,}| {40,}")
_TRANSCRIPT = re.compile(r"\s?[•●✦▣✻■›❯>] ")


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a question, the row that each stands on, and the text above them.

    Those that stand side by side, on one row, have no keys of their own.
    """

    choices: tuple[Choice, ...]
    rows: tuple[int, ...]
    text: tuple[str, ...]
    is_across: bool = False


def read_question(lines: Sequence[str], line: str) -> Question:
    """The lowest question of the screen; only its one known line if no choices are found."""
    found = _find_answers(_rows(lines))
    if found is None:
        return Question(" ".join(line.split()).encode("utf-8", "replace").decode())
    return Question("\n".join(line for line in found.text if line), found.choices)


def match_choices(question: Question, said: str) -> list[Choice]:
    """The choices that are meant by their key, by all their words, or by the first of these."""
    word = " ".join(said.split()).casefold()
    by_key = [choice for choice in question.choices if choice.key.casefold() == word]
    whole = [choice for choice in question.choices if choice.text.casefold() == word]
    begun = [choice for choice in question.choices if choice.text.casefold().startswith(word)]
    return by_key or whole or (begun if word else [])


@dataclass(frozen=True, slots=True)
class Mark:
    """Which choice, counted from 0, the program has marked, and how it is moved."""

    index: int
    is_across: bool


def read_mark(lines: Sequence[str]) -> Mark | None:
    """The one choice that is marked, on a screen with its escapes; None if that cannot be told.

    In a list it has a sign before it; of those side by side it is drawn on a colour of its own. A
    list of which several can be ticked has no such one.
    """
    rows = _rows([without_escapes(line) for line in lines])
    found = _find_answers(rows)
    if found is None:
        return None
    if found.is_across:
        row = rows[found.rows[0]]
        grounds = backgrounds(lines[found.rows[0]])
        at = [row.index(choice.text) for choice in found.choices]
        marked = [n for n, column in enumerate(at) if grounds[column] != grounds[at[0] - 2]]
    elif any(_TICK.search(rows[number]) for number in found.rows):
        return None
    else:
        marked = [n for n, number in enumerate(found.rows) if _MARKED.match(rows[number])]
    return Mark(marked[0], found.is_across) if len(marked) == 1 else None


def _rows(lines: Sequence[str]) -> list[str]:
    rows = [row[:LINE_MAX].rstrip().encode("utf-8", "replace").decode() for row in lines]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _find_answers(rows: Sequence[str]) -> Answers | None:
    plain = [_unframed(row) for row in rows]
    for number in range(len(rows) - 1, max(-1, len(rows) - REACH), -1):
        if len(letters := _LETTERED.findall(plain[number])) > 1:
            before = plain[number].partition("(" + letters[0][0] + ")")[0].strip()
            text = (*_text_above(rows, plain, number), before)
            choices = tuple(Choice(key.lower(), key + rest) for key, rest in letters)
            return Answers(choices, (number,) * len(choices), text)
        if _ACROSS.match(rows[number]):
            words = re.split(r"\s{2,}", plain[number])
            words = [word for word in words if not _KEY_HINT.match(word)]
            choices = tuple(Choice(str(n), word) for n, word in enumerate(words, 1))
            text = tuple(_text_above(rows, plain, number))
            return Answers(choices, (number,) * len(choices), text, is_across=True)
        if _NUMBERED.fullmatch(plain[number]):
            items = _list_ending_at(plain, number)
            choices = tuple(choice for _, choice in items)
            numbers = tuple(row for row, _ in items)
            return Answers(choices, numbers, tuple(_text_above(rows, plain, numbers[0])))
    return None


def _list_ending_at(plain: Sequence[str], end: int) -> list[tuple[int, Choice]]:
    """The items of the numbered list whose last item is there, each with its row."""
    wanted = None
    items: list[tuple[int, Choice]] = []
    for number in range(end, -1, -1):
        found = _NUMBERED.fullmatch(plain[number])
        if not found or (wanted is not None and int(found[1]) != wanted):
            continue
        wanted = int(found[1]) - 1
        items.insert(0, (number, Choice(found[1], found[2].strip())))
        if wanted == 0:
            break
    return items


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


def _unframed(row: str) -> str:
    if row.lstrip().startswith("┃"):
        row = _BESIDE.split(row)[0]
    return row.strip(" \t\xa0│┃")
