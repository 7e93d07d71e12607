"""Work beside the screen tells of each agent how far it is."""

from __future__ import annotations

from textual.message import Message

from tests.tui.conftest import Stage
from tmuxorch.core.progress import Phase
from tmuxorch.service.context import Context
from tmuxorch.tui.jobs import JobDone, Jobs, JobStepped
from tmuxorch.tui.workplace import Workplace


def test_a_job_for_several_agents_tells_of_each_what_is_done_to_it_and_of_no_other(
    stage: Stage,
) -> None:
    first, second, other = (stage.record(name) for name in ("a", "b", "no b"))
    world = stage.world
    workplace = Workplace(world.environ, world.socket, str(world.repo), str(world.directory))
    posted: list[Message] = []
    jobs = Jobs(workplace.open_context, posted.append)

    def work(ctx: Context) -> str:
        ctx.enter(first, Phase.ENDING)
        ctx.narrate("FIFOs are not saved, of b")
        ctx.enter(other, Phase.ENDING)
        ctx.enter(second, Phase.SAVING)
        return "result"

    jobs.start("working", work, ids=[first.task.id, second.task.id])
    jobs.wait(lambda _: None)
    *steps, done = posted
    assert steps == [
        JobStepped(first.task.id, Phase.ENDING),
        JobStepped(second.task.id, Phase.SAVING),
    ]
    assert isinstance(done, JobDone)
    assert done.result == "result"
