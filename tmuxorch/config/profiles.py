"""How one kind of agent is started, continued and read: its profile, and the argv it gives."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tmuxorch.model import Kind

Part = str | tuple[str, ...]
"""An argument, or arguments that go together and are left out if what they ask for is empty."""

LATEST = "latest"
_PLACEHOLDER = re.compile(r"\{(task|conversation|name|worktree)\}")


class TaskBy(StrEnum):
    """How a task reaches its agent."""

    ARGUMENT = "argument"
    STDIN = "stdin"
    PASTE = "paste"
    NONE = "none"


class AnswerBy(StrEnum):
    """How one of the choices that a question offers is taken."""

    KEY = "key"
    LINE = "line"
    ARROWS = "arrows"


@dataclass(frozen=True, slots=True)
class Profile:
    """One `[agents.NAME]`. An empty pattern matches nothing; an empty `resume` cannot resume.

    Patterns are regular expressions to be searched with `re.MULTILINE` in the last `region` lines;
    those that begin with `title` in the window's title. `box` is the whole input box, what is
    written in it as its first group; `leads` say what a text's first character means there.
    """

    name: str
    command: tuple[Part, ...]
    kind: Kind
    task: TaskBy = TaskBy.ARGUMENT
    resume: tuple[Part, ...] = ()
    resume_failed: str = ""
    ready: str = ""
    busy: str = ""
    waiting: str = ""
    trust: str = ""
    title_busy: str = ""
    title_waiting: str = ""
    title_idle: str = ""
    box: str = ""
    placeholder: str = ""
    queued: str = ""
    leads: tuple[str, ...] = ()
    literal: str = ""
    answer: AnswerBy = AnswerBy.KEY
    region: int = 15
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def reads_screen(self) -> bool:
        """Whether anything is to be found on its screen."""
        return bool(self.busy or self.waiting or self.ready or self.trust or self.box)

    def new_conversation(self) -> str | None:
        """What a fresh start's conversation is known by; None if it can never be resumed.

        An id where the agent is told one when it starts, else LATEST: whatever it did last.
        """
        if "conversation" in _asked_for(self.command):
            return str(uuid.uuid4())
        needs_id = "conversation" in _asked_for(self.resume)
        return LATEST if self.resume and not needs_id else None

    def can_resume(self, conversation: str | None) -> bool:
        """Whether that conversation can be gone on with."""
        return bool(self.resume) and conversation is not None


def build_command(
    profile: Profile, *, task: str, conversation: str, name: str, worktree: str, resume: bool
) -> tuple[str, ...]:
    """The argv that starts the agent; with `resume`, continues it where the profile can.

    A conversation id starts one conversation only: a fresh start needs a fresh one.
    """
    values = {"task": task, "conversation": conversation, "name": name, "worktree": worktree}
    if resume and profile.resume:
        return _fill(profile.resume, values)
    parts = profile.command
    if profile.task is TaskBy.ARGUMENT and "task" not in _asked_for(parts):
        parts = (*parts, "{task}")
    return _fill(parts, values)


def build_custom_command(argv: tuple[str, ...], task: str) -> tuple[str, ...]:
    """The argv of `new -- CMD…`: `{task}` is replaced, nothing else is touched."""
    return tuple(argument.replace("{task}", task) for argument in argv)


def _fill(parts: tuple[Part, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    argv: list[str] = []
    for part in parts:
        group = (part,) if isinstance(part, str) else part
        optional = part is group or _PLACEHOLDER.fullmatch(group[0])
        if optional and not all(values[name] for name in _asked_for(group)):
            continue
        # One pass: a task that itself says {name} stays as it was typed.
        argv += (_PLACEHOLDER.sub(lambda found: values[found[1]], each) for each in group)
    return tuple(argv)


def _asked_for(parts: tuple[Part, ...]) -> set[str]:
    """The placeholders that occur in the parts."""
    arguments = (a for part in parts for a in ((part,) if isinstance(part, str) else part))
    return {name for argument in arguments for name in _PLACEHOLDER.findall(argument)}
