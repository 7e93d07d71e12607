"""Answering: a choice of the question on an agent's screen, if that very question is there.

What was asked may have been answered elsewhere, and another question stand in its place: each key
is pressed only while a look has just shown the same question, and its words are still on the
screen in the moment of the key.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tmuxorch.config.profiles import AnswerBy
from tmuxorch.core.inputbox import plain_words
from tmuxorch.core.question import Mark, match_choices, read_mark
from tmuxorch.core.view import describe_question
from tmuxorch.errors import NotDelivered, NotReady, QuestionChanged
from tmuxorch.model import EventKind, Status
from tmuxorch.service.health.activity import profile_of
from tmuxorch.service.workers.onlooker import Onlooker, in_turn, poll

if TYPE_CHECKING:
    from tmuxorch.config import Config
    from tmuxorch.core.evidence import Judgement
    from tmuxorch.model import Agent, Choice, Question
    from tmuxorch.service.context import Context

SAME_S = 1.0  # for a dialog that is half drawn to become the one that is expected
GONE_S = 8.0  # for the question to go
STAYS_S = 1.5  # a question that stays as it is so long was not answered by its key
MOVED_S = 3.0  # for the mark to move
SHOWN_S = 3.0  # for what was typed to be seen
STEPS_MAX = 20


def answer(
    ctx: Context, config: Config, agent: Agent, said: str, *, shown: Question | None = None
) -> Choice:
    """Take the choice that is meant by its key or words; nothing is pressed unless the question
    is the one that was `shown`, by default the one that the list shows."""
    onlooker = Onlooker(ctx, agent, profile_of(agent, config))
    if shown is None and agent.status is Status.WAITING:
        shown = agent.run.question
    with in_turn(ctx, agent):
        question = _find_question(onlooker, shown)
        choice = choose(onlooker, question, said)
    asked = "".join(question.text.splitlines()[-1:])
    ctx.store.record(agent, EventKind.ANSWERED, f"with {choice.text!r} to {asked!r}")
    return choice


def choose(onlooker: Onlooker, question: Question, said: str) -> Choice:
    """Take that choice of the question that the last look has shown, and see the question go."""
    choice = _choice_meant(onlooker, question, said)
    how = onlooker.profile.answer if onlooker.profile else AnswerBy.KEY
    mark = read_mark(onlooker.lines)
    moved_to: int | None = None
    if how is AnswerBy.ARROWS or (mark is not None and mark.is_across):
        _move_to(onlooker, question, choice)
        _press(onlooker, question, "Enter")
    elif how is AnswerBy.LINE:
        _type_line(onlooker, question, choice)
    elif len(choice.key) == 1:
        _press(onlooker, question, choice.key)
        moved_to = question.choices.index(choice)
    else:
        raise NotReady(f"{onlooker.name} has no key for {choice.text!r}; nothing was pressed")
    _wait_gone(onlooker, question, moved_to)
    return choice


def _find_question(onlooker: Onlooker, shown: Question | None) -> Question:
    """The question on the screen, if it is the one that was shown."""
    now = onlooker.look()

    def is_shown() -> bool:
        nonlocal now
        now = onlooker.look()
        return now.status is Status.WAITING and now.question == shown

    if now.status is Status.WAITING and shown is not None and now.question != shown:
        poll(SAME_S, is_shown)
    if now.status is not Status.WAITING or now.question is None:
        raise NotReady(f"{onlooker.name} asks nothing (it is {now.status}); nothing was pressed")
    if shown is not None and now.question != shown:
        from tmuxorch.adapters.store.records import Sighting

        onlooker.ctx.store.show(
            [Sighting(onlooker.agent, {"question": now.question}, EventKind.SEEN)]
        )
        raise QuestionChanged(
            f"{onlooker.name} asks something else by now, so nothing was pressed; if you mean "
            f"this, answer again:\n{describe_question(now.question)}"
        )
    return now.question


def _choice_meant(onlooker: Onlooker, question: Question, said: str) -> Choice:
    found = match_choices(question, said)
    if len(found) == 1:
        return found[0]
    if not question.choices:
        raise NotReady(
            f"{onlooker.name} offers no choices that can be read, so nothing was pressed; answer "
            f"it there (`tmuxorch attach {onlooker.name}`) or in words with "
            f"`tmuxorch send --answer`:\n{describe_question(question)}"
        )
    fits = f"fits {len(found)} of the answers" if found else "is none of the answers"
    raise NotReady(
        f"{said[:60]!r} {fits}, so nothing was pressed; {onlooker.name} asks:\n"
        f"{describe_question(question)}"
    )


# -- keys ---------------------------------------------------------------------------------


def _press(onlooker: Onlooker, question: Question, key: str) -> None:
    onlooker.press(key, while_shown=_words_of(question))


def _words_of(question: Question) -> str:
    """Plain words of the question that stand on one line of the screen."""
    return plain_words(question.text) or plain_words(question.choices[0].text)


def _look_again(onlooker: Onlooker, question: Question) -> Judgement:
    """A look, on which the question must be the same still."""
    now = onlooker.look()
    if now.status is Status.WAITING and now.question == question:
        return now
    raise QuestionChanged(
        f"the question of {onlooker.name} went away before it was answered; look at it with "
        f"`tmuxorch explain {onlooker.name}`"
    )


def _move_to(onlooker: Onlooker, question: Question, choice: Choice) -> None:
    """Move the mark to the choice, a step at a time, each seen."""
    wanted = question.choices.index(choice)
    for _ in range(STEPS_MAX):
        before = read_mark(onlooker.lines)
        if before is None:
            raise NotReady(
                f"which answer {onlooker.name} has marked cannot be seen, so none was chosen; "
                f"answer it there (`tmuxorch attach {onlooker.name}`)"
            )
        if before.index == wanted:
            return
        names = ("Right", "Left") if before.is_across else ("Down", "Up")
        _press(onlooker, question, names[wanted < before.index])

        def is_moved(before: object = before) -> bool:
            _look_again(onlooker, question)
            return read_mark(onlooker.lines) not in (None, before)

        if not poll(MOVED_S, is_moved):
            break
    raise NotDelivered(
        f"{onlooker.name} did not move to {choice.text!r}, so Enter was not pressed; it still "
        f"asks:\n{describe_question(question)}"
    )


def _type_line(onlooker: Onlooker, question: Question, choice: Choice) -> None:
    """Type the key of the choice, see it, and press Enter."""
    before = list(onlooker.plain)
    _press(onlooker, question, choice.key)

    def is_typed() -> bool:
        _look_again(onlooker, question)
        return onlooker.plain != before

    if not poll(SHOWN_S, is_typed):
        raise NotDelivered(f"{onlooker.name} showed nothing of the answer; Enter was not pressed")
    _press(onlooker, question, "Enter")


def _wait_gone(onlooker: Onlooker, question: Question, moved_to: int | None) -> None:
    """Wait until two looks in a row show that it asks this no more.

    In some dialogs the key only moves the mark there: then Enter is pressed, once, after a while
    in which the question stayed as it is.
    """
    now: Judgement
    gone = 0
    pressed_at = time.monotonic()

    def is_gone() -> bool:
        nonlocal now, gone, moved_to
        now = onlooker.look()
        is_same = now.status is Status.WAITING and now.question == question
        if is_same and moved_to is not None and time.monotonic() > pressed_at + STAYS_S:
            if read_mark(onlooker.lines) == Mark(moved_to, is_across=False):
                _press(onlooker, question, "Enter")
            moved_to = None
        gone = 0 if is_same else gone + 1
        return gone > 1

    if not poll(GONE_S, is_gone):
        raise NotDelivered(f"{onlooker.name} still asks the same:\n{describe_question(question)}")
