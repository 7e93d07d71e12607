"""Do libtmux and GitPython see what we see? tmux and git change, and what they print with them.

What changed while they looked is no disagreement: we look before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tmuxorch.adapters.git.branches import branch_commits
from tmuxorch.adapters.git.location import find_repo
from tmuxorch.adapters.git.second_opinion import ask_gitpython
from tmuxorch.adapters.tmux.second_opinion import ask_libtmux, describe
from tmuxorch.adapters.tmux.server import Tmux
from tmuxorch.core.observation import Unknown
from tmuxorch.errors import TmuxorchError
from tmuxorch.service.care.doctor import Check
from tmuxorch.service.health.panes import ANSWER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tmuxorch.model import Agent
    from tmuxorch.service.context import Context

    Seen = Mapping[str, str]


def check_second_opinions(ctx: Context) -> Iterator[Check]:
    """What both see of the agents' windows, and of their branches."""
    agents = ctx.store.agents()
    sockets = {agent.run.socket for agent in agents}
    yield _compare("libtmux", "windows", (_both_of_tmux(ctx, socket) for socket in sorted(sockets)))
    repos = {agent.task.repo for agent in agents}
    yield _compare("GitPython", "branches", (_both_of_git(repo, agents) for repo in sorted(repos)))


def _both_of_tmux(ctx: Context, socket: str) -> tuple[Seen, Seen | Unknown]:
    # Whoever does not answer now is told of where the agents are looked at.
    tmux = Tmux(socket, timeout_s=min(ctx.tmux_timeout_s, ANSWER_S))

    def look() -> Seen:
        return {pane.place.pane: describe(pane.place.window, pane.pid) for pane in tmux.panes()}

    return _between(look, lambda _: ask_libtmux(socket))


def _both_of_git(root: str, agents: Iterable[Agent]) -> tuple[Seen, Seen | Unknown]:
    branches = {agent.task.branch for agent in agents if agent.task.repo == root}
    repo = find_repo(root)

    def look() -> Seen:
        return {name: oid for name, oid in branch_commits(repo).items() if name in branches}

    return _between(look, lambda ours: ask_gitpython(repo, ours))


def _between(
    look: Callable[[], Seen], ask: Callable[[Seen], Seen | Unknown]
) -> tuple[Seen, Seen | Unknown]:
    """What we saw before and after alike, and what the other saw meanwhile."""
    before = look()
    if not before:
        return {}, {}
    theirs, after = ask(before), look()
    return {name: seen for name, seen in before.items() if after.get(name) == seen}, theirs


def _compare(name: str, things: str, looks: Iterator[tuple[Seen, Seen | Unknown]]) -> Check:
    same = 0
    differing, unknown = [], []
    try:
        for ours, theirs in looks:
            if isinstance(theirs, Unknown):
                unknown.append(theirs.why)
                continue
            for key, seen in ours.items():
                if theirs.get(key) == seen:
                    same += 1
                else:
                    differing.append(f"{key} is {seen} to us, {theirs.get(key, 'gone')} to it")
    except TmuxorchError as e:  # is said where we look at the agents themselves
        unknown.append(e.message)
    said = [*differing, *(f"no second opinion: {why}" for why in unknown)]
    if same or not said:
        said.append(f"sees the same {same} {things}")
    return Check(name, not differing, "; ".join(said))
