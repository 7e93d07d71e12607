"""Why an agent's status is what it is: a fresh look, and what each source said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch.core.evidence import Evidence, Judgement, Sight, judge
from tmuxorch.core.observation import Alive
from tmuxorch.core.view import state_and_status
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import State, Status
from tmuxorch.service.health.activity import profile_of
from tmuxorch.service.health.liveness import look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tmuxorch.adapters.tmux.server import Pane
    from tmuxorch.config import Config
    from tmuxorch.config.profiles import Profile
    from tmuxorch.model import Agent, Question
    from tmuxorch.service.context import Context


@dataclass(frozen=True, slots=True)
class Explanation:
    """The status, what decided it, and the evidence of a living agent."""

    status: Status
    by: str
    evidence: tuple[Evidence, ...] = ()
    question: Question | None = None
    why: str = ""


def judge_now(
    ctx: Context, profile: Profile | None, agent: Agent, pane: Pane, lines: Sequence[str]
) -> Judgement:
    """What the agent does by this look at it, which remembers no earlier one."""
    return judge(
        profile,
        Sight(
            now=ctx.clock(),
            drawn_at=pane.activity_at,
            title=pane.title,
            lines=lines,
            reported=agent.run.reported,
            reported_at=agent.run.reported_at,
        ),
    )


def explain(ctx: Context, config: Config, agent: Agent) -> Explanation:
    """Look at the agent anew and say what each source of its status says."""
    glance = look(ctx.state_dir, agent)
    state, status = state_and_status(agent, glance)
    if state is not State.RUNNING or not isinstance(glance.process, Alive):
        return Explanation(status, "record", why=f"it is {state}, so nothing tells what it does")
    try:
        pane = ctx.tmux(agent.run.socket).find_pane(agent.task.id)
        if pane is None:
            return Explanation(status, "record", why="it has no window that could be read")
        lines = ctx.tmux(agent.run.socket).capture(pane.place.pane).splitlines()
    except TmuxorchError as e:
        return Explanation(status, "record", why=e.message)
    judged = judge_now(ctx, profile_of(agent, config), agent, pane, lines)
    return Explanation(judged.status, judged.by, judged.evidence, judged.question)
