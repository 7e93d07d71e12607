"""What the commands have done by services: the door from the screen to them.

Services are imported where they are called, in a job's thread: the first frame does not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tmuxorch.core.observation import Unknown
from tmuxorch.core.stake import describe
from tmuxorch.errors import TmuxorchError, UnknownName
from tmuxorch.model import Agent, AgentId, HistoryEntry, Reason, State
from tmuxorch.tui.snapshot import AgentRow, WatcherSeen

if TYPE_CHECKING:
    from tmuxorch.service.context import Context
    from tmuxorch.service.sweep.sweep import Orphan
    from tmuxorch.service.workers.sending import Delivery
    from tmuxorch.tui.workplace import Workplace

TASKS_REMEMBERED = 200


@dataclass(frozen=True, slots=True)
class FilledForm:
    """A filled-in form for a new worker; "" means "you choose"."""

    repo: str
    task: str
    agent: str = ""
    base: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class FormFacts:
    """What the form for a new worker offers."""

    agents: tuple[str, ...]
    default_agent: str
    base: str
    bases: tuple[str, ...]
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StakeReport:
    """What a removal would touch, in words."""

    id: AgentId
    name: str
    running: bool
    processes: int
    lines: tuple[str, ...] = ()
    branch: str = ""
    uncommitted: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """Whom a message was sent to and what became of it; who did not get it, and why."""

    sent: tuple[tuple[str, Delivery], ...]
    refused: tuple[tuple[Agent, str], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done to several agents, one by one; failures are sentences."""

    done: tuple[HistoryEntry, ...] = ()
    names: tuple[str, ...] = ()
    failures: tuple[str, ...] = field(default=())


def form_facts(ctx: Context, workplace: Workplace, repo: str) -> FormFacts:
    from tmuxorch.service.repositories import find_bases, find_default_base

    config = workplace.load_config(ctx, repo)
    tasks = [agent.task.text for agent in reversed(ctx.store.agents())]
    tasks += [entry.task.text for entry in ctx.store.history(limit=TASKS_REMEMBERED)]
    unique = tuple(dict.fromkeys(task for task in tasks if task.strip()))
    base = config.defaults.base or find_default_base(repo)
    agents = tuple(sorted(config.agents))
    return FormFacts(agents, config.defaults.agent, base, find_bases(repo), unique)


def create(ctx: Context, workplace: Workplace, form: FilledForm) -> Agent:
    from tmuxorch.service.repositories import find_repository
    from tmuxorch.service.workers import creation

    made = creation.create(
        ctx,
        workplace.load_config(ctx, form.repo),
        creation.Request(
            repo=find_repository(form.repo),
            cwd=form.repo,
            task=form.task,
            name=form.name or None,
            agent=form.agent or None,
            base=form.base or None,
        ),
    )
    ensure_watcher(ctx)
    return made


def observe_stake(row: AgentRow) -> StakeReport:
    """What is at stake in one agent; a look that fails is said, never taken for nothing."""
    from tmuxorch.service.removal import work
    from tmuxorch.service.workers import inspection

    agent = row.agent
    family = inspection.observe_family(agent)
    alive = row.state is State.RUNNING
    found = work.observe_stake(agent)
    if isinstance(found, Unknown):
        return StakeReport(agent.task.id, agent.task.name, alive, len(family), problem=found.why)
    keeps = agent.task.branch if found.commits or not agent.task.branch_made else ""
    lines = tuple(describe(found))
    uncommitted = bool(found.staged or found.unstaged or found.untracked)
    return StakeReport(
        agent.task.id, agent.task.name, alive, len(family), lines, keeps, uncommitted
    )


def remove(ctx: Context, agents: Sequence[Agent]) -> Outcome:
    from tmuxorch.service.removal import removal

    done: list[HistoryEntry] = []
    failures: list[str] = []
    for agent in agents:
        try:
            current = ctx.store.agent(agent.task.id) or agent
            done.append(removal.remove(ctx, current, reason=Reason.USER))
        except TmuxorchError as e:
            failures.append(e.message)
    return Outcome(tuple(done), tuple(e.task.name for e in done), tuple(failures))


def send(ctx: Context, workplace: Workplace, agents: Sequence[Agent], text: str) -> Sent:
    from tmuxorch.service.workers import sending

    sent, refused = [], []
    for agent in agents:
        try:
            config = workplace.load_config(ctx, agent.task.repo)
            now = ctx.store.agent(agent.task.id) or agent
            sent.append((agent.task.name, sending.send(ctx, config, now, text)))
        except TmuxorchError as e:
            refused.append((agent, e.message))
    return Sent(tuple(sent), tuple(refused))


def stop(ctx: Context, workplace: Workplace, agents: Sequence[Agent]) -> Outcome:
    from tmuxorch.service.workers import running

    stopped, failures = [], []
    for agent in agents:
        try:
            grace_s = workplace.config_of(ctx, agent.task.repo).cleanup.grace_s
            stopped.append(running.stop(ctx, agent, grace_s=grace_s).task.name)
        except TmuxorchError as e:
            failures.append(e.message)
    return Outcome(names=tuple(stopped), failures=tuple(failures))


def restart(ctx: Context, workplace: Workplace, agents: Sequence[Agent]) -> Outcome:
    from tmuxorch.service.workers import running

    started, failures = [], []
    for agent in agents:
        try:
            config = workplace.load_config(ctx, agent.task.repo)
            now = ctx.store.agent(agent.task.id) or agent
            started.append(running.restart(ctx, config, now, fresh=False).task.name)
        except TmuxorchError as e:
            failures.append(e.message)
    ensure_watcher(ctx)
    return Outcome(names=tuple(started), failures=tuple(failures))


def rename(ctx: Context, agent: Agent, name: str) -> Agent:
    from tmuxorch.service.workers import renaming

    return renaming.rename(ctx, agent, name)


def last_lines(ctx: Context, agent: Agent, count: int) -> list[str]:
    """The end of the agent's screen, from its window or from what was kept of it."""
    from tmuxorch.service.removal import removal
    from tmuxorch.service.workers import inspection

    try:
        text = inspection.capture_screen(ctx, agent)
    except TmuxorchError:
        text = None
    if text is None:
        text = inspection.read_saved_screen(ctx, agent) or ""
    return [line for line in removal.trim_screen(text).splitlines() if line.strip()][-count:]


def merge(ctx: Context, agent: Agent, *, commit: bool) -> str:
    """Bring its work into its base branch; a sentence about what came of it."""
    from tmuxorch.service.landing import merging

    merged = merging.merge(ctx, agent, how=merging.How.MERGE, commit=commit)
    if not merged.changed:
        return f"all of {agent.task.name} was in {merged.base} already"
    count = len(merged.commits)
    return f"{count} commit{'' if count == 1 else 's'} of {agent.task.name} went into {merged.base}"


def restore(ctx: Context, workplace: Workplace, entry: HistoryEntry) -> Agent:
    from tmuxorch.service.removal import restoring

    config = workplace.load_config(ctx, entry.task.repo)
    return restoring.restore(ctx, config, entry, start=False)


def undo(ctx: Context, workplace: Workplace, entry: HistoryEntry | None) -> Agent:
    """Bring back what was removed last: `entry`, or else the newest by a person."""
    if entry is None:
        removed = [
            e
            for e in ctx.store.history(limit=50)
            if e.reason is Reason.USER and e.restored_at is None
        ]
        if not removed:
            raise UnknownName("there is no removal to undo; H lists all removed workers")
        entry = removed[0]
    return restore(ctx, workplace, entry)


def observe_watcher(state_dir: str) -> WatcherSeen:
    from tmuxorch.service.health import leader

    return WatcherSeen(known=True, alive=leader.observe_watcher(state_dir).alive)


def ensure_watcher(ctx: Context) -> None:
    from tmuxorch.service.health import leader

    leader.ensure_watcher(ctx)


def observe_orphans(ctx: Context, workplace: Workplace) -> list[Orphan]:
    from tmuxorch.service.sweep import sweep as sweeping

    keep_days = workplace.load_config(ctx, None).history.keep_days
    return sweeping.observe_orphans(ctx, keep_days=keep_days)


def can_sweep(orphan: Orphan) -> bool:
    from tmuxorch.service.sweep.sweep import Disposal

    return orphan.action in (Disposal.REMOVE, Disposal.SALVAGE) and not orphan.done


def sweep(ctx: Context, workplace: Workplace, orphans: Sequence[Orphan]) -> Outcome:
    from tmuxorch.service.sweep import sweep as sweeping

    keep_days = workplace.load_config(ctx, None).history.keep_days
    done, failures = [], []
    for orphan in orphans:
        try:
            swept = sweeping.apply(ctx, orphan, keep_days=keep_days)
        except TmuxorchError as e:
            failures.append(e.message)
            continue
        if swept.done:
            done.append(orphan.name)
        else:
            failures.append(f"{orphan.name} was left: {swept.reason}")
    return Outcome(names=tuple(done), failures=tuple(failures))
