"""Sending that is safe and arrives: look, paste, see it in the box, press Enter, see it gone.

The screen is read anew before each of these, so that no key goes into a question that nobody
answered. Enter is pressed again only while the text is seen to stand in the box.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tmuxorch.adapters.system.locks import flock
from tmuxorch.adapters.system.run import Timeout
from tmuxorch.core.evidence import Source
from tmuxorch.core.inputbox import holds, plain_words, read_box
from tmuxorch.core.literal import find_control
from tmuxorch.core.view import describe_question
from tmuxorch.errors import AgentAsks, BadText, NotDelivered, NotReady, NotRunning
from tmuxorch.model import Status
from tmuxorch.service.health.activity import profile_of
from tmuxorch.service.workers import answering
from tmuxorch.service.workers.onlooker import Onlooker, poll

if TYPE_CHECKING:
    from tmuxorch.config import Config
    from tmuxorch.config.profiles import Profile
    from tmuxorch.core.evidence import Judgement
    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context

MAX_TEXT_BYTES = 1024 * 1024
READY_S = 20.0  # a program that has just started is waited for
SHOWN_S = 8.0  # for the box to show what was pasted
TAKEN_S = 8.0  # for it to leave the box
ECHO_S = 0.3  # for a screen without a known box to show that anything came
QUEUED_S = 1.0  # for a program that works to say that it has put the text by
AGAIN_S = 1.5  # the box shows it still: the Enter came too soon for the program
BOXLESS_S = 3.0  # for an idle program that has just started to draw its box
LONG_MAX = 60
# Others' messages go first, each as long as it takes; nobody waits for ever.
TURN_S = 120.0


class Delivery(StrEnum):
    """What became of a message: `sent` means that nobody can tell."""

    DELIVERED = "delivered"
    QUEUED = "queued"
    SENT = "sent"


@dataclass(frozen=True, slots=True)
class Manner:
    """How to send: as the `answer` to the open question, without waiting for what becomes of it
    (`confirm` false), with a leading sign made plain text (`literal`); `patient` waits for the
    prompt of a program that is seen to be busy with something else, such as its own start."""

    patient: bool = False
    answer: bool = False
    confirm: bool = True
    literal: bool = False


PLAINLY = Manner()


def check_text(text: str) -> bytes:
    """The bytes to paste; `BadText` for what a terminal would obey, and for too much."""
    if not text:
        raise BadText("the text is empty, so nothing was sent")
    control = find_control(text)
    if control is not None:
        index, what = control
        raise BadText(
            f"the text holds {what} at character {index}, which a terminal would obey; "
            "nothing was sent"
        )
    data = text.encode()
    check_size(data)
    return data


def check_size(data: bytes) -> None:
    """Refuse more than an agent is given at once."""
    if len(data) > MAX_TEXT_BYTES:
        raise BadText(
            "the text is larger than the 1 MB that can be sent; put it in a file in the worktree "
            "and send its name"
        )


def meaning_of(profile: Profile | None, text: str) -> str | None:
    """What the text's first character makes of it in that program, None if nothing special."""
    for lead in profile.leads if profile else ():
        if text.startswith(lead[0]):
            return lead[2:]
    return None


def send(
    ctx: Context, config: Config, agent: Agent, text: str, manner: Manner = PLAINLY
) -> Delivery:
    """Paste the text as one message and submit it once; nothing in it is changed."""
    check_text(text)
    profile = profile_of(agent, config)
    meaning = meaning_of(profile, text)
    if meaning and not manner.answer:
        if manner.literal:
            text = _protected(agent, profile, text)
        else:
            ctx.narrate(f"to {agent.task.agent}, {text[0]} at the beginning of a text {meaning}")
    lock = os.path.join(ctx.run_dir(agent.task.id), "sending")
    try:
        with flock(lock, timeout_s=TURN_S):
            return _Sending(ctx, agent, profile, text, manner).run()
    except FileNotFoundError:
        raise NotRunning(f"{agent.task.name} has been removed; nothing was sent") from None
    except Timeout:
        raise NotReady(
            f"other messages are still on their way to {agent.task.name}; nothing was sent"
        ) from None


def _protected(agent: Agent, profile: Profile | None, text: str) -> str:
    """The text with what makes its first character plain text to that program."""
    if profile is None or text[0] not in profile.literal:
        raise BadText(
            f"nothing is known that makes a leading {text[0]} plain text to {agent.task.agent}; "
            "nothing was sent"
        )
    return f" {text}"


class _Sending:
    """One message on its way."""

    def __init__(
        self, ctx: Context, agent: Agent, profile: Profile | None, text: str, manner: Manner
    ) -> None:
        self.ctx = ctx
        self.agent = agent
        self.name = agent.task.name
        self.profile = profile
        self.text = text
        self.manner = manner
        self.onlooker = Onlooker(ctx, agent, profile)

    def run(self) -> Delivery:
        now = self._look()
        if self.manner.answer:
            return self._answer(now)
        now = self._wait_ready(now)
        self._refuse_question(now, "nothing was sent")
        if self._box() is None or not self.manner.confirm:
            return self._send_blindly(now)
        self._refuse_draft(self._box())
        self._paste()
        written = self._wait_shown()
        was_busy = now.status is Status.WORKING
        self._press(written)
        return self._wait_taken(written, was_busy=was_busy)

    # -- looks ------------------------------------------------------------------

    def _look(self) -> Judgement:
        return self.onlooker.look()

    def _box(self) -> str | None:
        return read_box(self.profile, self.onlooker.lines) if self.profile else None

    def _has_box(self) -> bool:
        return bool(self.profile and self.profile.box)

    def _wait_ready(self, now: Judgement) -> Judgement:
        """One that has just started is waited for: what comes before its prompt gets lost."""
        if not self._has_box() or not self.manner.confirm:
            return now
        deadline = time.monotonic() + READY_S
        told, idle_since = False, None
        while now.status is not Status.WAITING and self._box() is None:
            # A title may say so before there is a box; a box that is drawn otherwise never comes.
            if not self._reads_as(now, Status.IDLE):
                idle_since = None
            elif idle_since is None:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > BOXLESS_S:
                return now
            if self._reads_as(now, Status.WORKING) and not self.manner.patient:
                raise NotReady(f"{self.name} takes no message while it works; nothing was sent")
            if time.monotonic() > deadline:
                raise NotReady(
                    f"{self.name} shows no prompt, so nothing was sent; look at it with "
                    f"`tmuxorch attach {self.name}`, or send it unseen with --no-confirm"
                )
            if not told:
                self.ctx.narrate(f"waiting for {self.name} to show its prompt")
                told = True
            time.sleep(0.1)
            now = self._look()
        return now

    def _reads_as(self, now: Judgement, status: Status) -> bool:
        return now.status is status and now.by is not Source.OUTPUT

    def _refuse_question(self, now: Judgement, done: str) -> None:
        if now.status is Status.WAITING:
            raise AgentAsks(
                f"{self.name} asks something, so {done}; answer it there "
                f"(`tmuxorch attach {self.name}`) or with `tmuxorch send --answer`:\n"
                f"{describe_question(now.question)}"
            )

    def _refuse_draft(self, written: str | None) -> None:
        if written:
            raise NotReady(
                f"{_shown(written)} is written in the input box of {self.name} and would become "
                "one message with this; nothing was sent. Submit or clear it there "
                f"(`tmuxorch attach {self.name}`)"
            )

    # -- deeds ------------------------------------------------------------------

    def _paste(self) -> None:
        buffer = f"tmuxorch-{self.agent.task.id}-{os.getpid()}"
        self.onlooker.tmux.paste(self.onlooker.pane, self.text.encode(), buffer=buffer)

    def _press(self, written: str) -> None:
        """Enter, only while the box is seen to hold the text, and no question is open."""
        self.onlooker.press("Enter", while_shown=plain_words(written))

    def _send_blindly(self, now: Judgement) -> Delivery:
        """To a program of whose input nothing is known: only an open question can be seen."""
        before = list(self.onlooker.lines)
        self._paste()

        def is_echoed() -> bool:
            nonlocal now
            now = self._look()
            return self.onlooker.lines != before

        poll(ECHO_S, is_echoed)
        self._refuse_question(
            now, "Enter was not pressed: the text was pasted just when the question came"
        )
        self.onlooker.press("Enter")
        return Delivery.SENT

    def _wait_shown(self) -> str:
        """Wait until the box shows the text and has come to rest; what it shows."""
        seen: list[str] = [""]

        def is_shown() -> bool:
            self._refuse_question(
                self._look(), "Enter was not pressed: the text was pasted just when it began to ask"
            )
            written = self._box() or ""
            rests = written == seen[0]
            seen[0] = written
            return bool(written) and rests and holds(written, self.text)

        if poll(SHOWN_S, is_shown):
            return seen[0]
        left = f"its input box holds {_shown(seen[0])}" if seen[0] else "its input box is empty"
        raise NotDelivered(
            f"{self.name} was not seen to take the text and Enter was not pressed; {left}"
        )

    def _wait_taken(self, written: str, *, was_busy: bool) -> Delivery:
        """Wait until the text has left the box; press again while it is seen to be there."""
        pressed_at = time.monotonic()
        still = written
        without = 0

        def is_gone() -> bool:
            nonlocal pressed_at, still, without
            now = self._look()
            box = self._box()
            still = box or ""
            without = without + 1 if box is None else 0
            if box is None:
                # Some have no box while they work; of others one look may miss it.
                works = now.status is Status.WORKING and now.by is Source.SCREEN
                return now.status is Status.WAITING or (works and without > 1)
            if not box or not holds(box, self.text):
                return True
            if time.monotonic() - pressed_at > AGAIN_S and now.status is not Status.WAITING:
                self._press(box)
                pressed_at = time.monotonic()
            return False

        try:
            is_taken = poll(TAKEN_S, is_gone)
        except NotRunning:  # the text told it to end, or it ended over it
            return Delivery.SENT
        if not is_taken:
            if not still:
                return Delivery.SENT
            raise NotDelivered(
                f"{self.name} did not take the text: {_shown(still)} is still in its input box; "
                f"submit or clear it there (`tmuxorch attach {self.name}`)"
            )
        return Delivery.QUEUED if was_busy and self._is_queued() else Delivery.DELIVERED

    def _is_queued(self) -> bool:
        """Whether the program soon says that it has put the text by."""
        queued = self.profile.queued if self.profile else ""

        def is_said() -> bool:
            self._look()
            shown = "\n".join(self.onlooker.plain)
            return re.search(queued, shown, re.MULTILINE) is not None

        return bool(queued) and poll(QUEUED_S, is_said)

    # -- answers ----------------------------------------------------------------

    def _answer(self, now: Judgement) -> Delivery:
        """Give the text to the open question: as one of its choices, or in words if it has none;
        Enter only into that very question."""
        if now.status is not Status.WAITING:
            raise NotReady(f"{self.name} asks nothing (it is {now.status}); nothing was sent")
        question, before = now.question, list(self.onlooker.lines)
        if question is not None and question.choices:
            answering.choose(self.onlooker, question, self.text)
            return Delivery.DELIVERED
        self._paste()

        def is_echoed() -> bool:
            nonlocal now
            now = self._look()
            return self.onlooker.lines != before

        poll(ECHO_S, is_echoed)
        if now.status is Status.WAITING and now.question == question:
            self.onlooker.press("Enter")

        def is_answered() -> bool:
            nonlocal now
            now = self._look()
            return now.status is not Status.WAITING or now.question != question

        if not self.manner.confirm:
            return Delivery.SENT
        if not poll(TAKEN_S, is_answered):
            raise NotDelivered(
                f"{self.name} still asks the same:\n{describe_question(now.question)}"
            )
        return Delivery.DELIVERED


def _shown(written: str) -> str:
    one = " ".join(written.split())
    return repr(one if len(one) <= LONG_MAX else one[: LONG_MAX - 1] + "…")
