"""What a row of the table of commands says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmuxorch.tui.screens.board import BoardScreen


class Group(Enum):
    """The headings of the help."""

    AGENTS = "Agents"
    LOOKING = "Looking"
    LIST = "The list"
    NUMBERS = "The first nine agents"
    SCREEN = "This screen"


class Need(Enum):
    """What must be there for a command to do anything.

    The agents meant are the marked ones, or else the selected one.
    """

    NOTHING = auto()
    AGENT = auto()
    RUNNING = auto()  # one of those meant runs
    STARTED = auto()  # one of those meant runs, or has ended
    WAITING = auto()  # some agent of the list waits for the person
    REPOSITORY = auto()  # the screen was opened in one


@dataclass(frozen=True, slots=True)
class Command:
    """One row: `name` is for `[keys]`, the first of `keys` is the one that is shown.

    `words` are for the bottom line and the palette, `help` says more. `many`: all marked agents
    are meant. `rank` orders the bottom line, the smallest first and the largest always there; 0
    is not on it, and neither is one whose `is_timely` says no.
    """

    name: str
    keys: str
    words: str
    group: Group
    needs: Need
    do: Callable[[BoardScreen], Awaitable[None] | None]
    rank: int = 0
    many: bool = False
    is_timely: Callable[[BoardScreen], bool] = lambda _: True
    help: str = ""
