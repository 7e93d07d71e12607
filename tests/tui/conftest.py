"""The screen in a private world, driven by Textual's Pilot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.agents import changed
from tests.conftest import DEADLINE_S, World
from tmuxorch.adapters.store import records
from tmuxorch.adapters.store.rows import agent_of
from tmuxorch.adapters.system import procfs
from tmuxorch.model import Agent, AgentId, Kind, State, Status
from tmuxorch.paths import ensure_private
from tmuxorch.tui.app import TmuxorchApp
from tmuxorch.tui.screens.board import BoardScreen
from tmuxorch.tui.widgets.agent_list import AgentList
from tmuxorch.tui.widgets.bars import Headline, KeyBar
from tmuxorch.tui.widgets.text_view import TextView
from tmuxorch.tui.workplace import Workplace


@dataclass
class RecordedTerminal:
    """Notes what the terminal would have been lent to."""

    lent: list[tuple[Sequence[str], Mapping[str, str], str | None]] = field(default_factory=list)
    says: str = ""
    kept_errors: list[bool] = field(default_factory=list)

    def lend(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        cwd: str | None = None,
        keep_errors: bool = False,
    ) -> str:
        self.lent.append((argv, environ, cwd))
        self.kept_errors.append(keep_errors)
        return self.says


class NotingApp(TmuxorchApp):
    """Remembers what it said."""

    def __init__(self, workplace: Workplace) -> None:
        super().__init__(workplace)
        self.noted: list[str] = []

    def notify(self, message: str, **kwargs: Any) -> None:
        self.noted.append(message)
        super().notify(message, **kwargs)


class Stage:
    """The app of one test, and short words for what is on its screen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.environ = {**world.environ, "TMUXORCH_WATCHER": "off"}
        self.keys: dict[str, str] = {}
        self.repo: Path | None = world.repo
        self.terminal = RecordedTerminal()
        self.size = (120, 40)
        self._made = 0

    # -- before it opens ---------------------------------------------------------------

    def record(self, name: str, status: Status = Status.WORKING, **changes: Any) -> Agent:
        """An agent that is only a record; its process is this test's, so it is alive."""
        ensure_private(str(self.world.state))
        opened = records.open_store(str(self.world.state))
        self._made += 1
        repo = changes.pop("repo", str(self.world.repo))
        agent = agent_of(
            id=AgentId(f"{self._made:012x}"),
            name=name,
            repo=repo,
            task=changes.pop("task", f"the task of {name}"),
            agent="demo",
            kind=Kind.WORKER,
            state=State.RUNNING,
            status=status,
            branch=f"tmuxorch/{name}",
            branch_made=True,
            base="main",
            base_commit="0" * 40,
            worktree=str(self.world.worktrees / name),
            command=("sleep", "1000"),
            socket=self.world.socket,
            process=procfs.identify_self(),
            created_at=time.time() - 100 + self._made,
        )
        agent = changed(agent, **changes)
        opened.add(agent)
        opened.close()
        return agent

    # -- while it is open --------------------------------------------------------------

    def play(self, story: Callable[[Pilot[None]], Awaitable[None]]) -> None:
        """Open the app, wait until it has read the store, play, close it."""
        workplace = Workplace(
            environ=self.environ,
            socket=self.world.socket,
            repo=str(self.repo) if self.repo else None,
            cwd=str(self.world.directory),
            keys=self.keys,
        )
        self.app = NotingApp(workplace)
        self.app.terminal = self.terminal

        async def play() -> None:
            async with self.app.run_test(size=self.size, notifications=True) as pilot:
                self.pilot = pilot
                await self.until(lambda: self.board.roster.snapshot.loaded and self.app.configured)
                await story(pilot)

        asyncio.run(play())
        self.app.jobs.wait(lambda _: None)

    async def until(self, look: Callable[[], object], what: str = "") -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not look():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{what or 'the condition'} did not come true:\n{self.painted}\n{self.said}"
                )
            await self.pilot.pause(0.02)

    async def see(self, text: str) -> None:
        """Wait until the text is painted."""
        await self.until(lambda: text in self.painted, f"{text!r} on the screen")

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def board(self) -> BoardScreen:
        return self.app.board

    @property
    def on_board(self) -> bool:
        """Whether no dialog is open."""
        return self.app.screen is self.app.board

    @property
    def names(self) -> list[str]:
        return [row.agent.task.name for row in self.board.roster.rows]

    @property
    def selected(self) -> str | None:
        row = self.board.roster.row
        return row.agent.task.name if row else None

    @property
    def marked(self) -> set[str]:
        roster = self.board.roster
        return {row.agent.task.name for row in roster.rows if row.id in roster.marked}

    @property
    def headline(self) -> str:
        return self.board.query_one(Headline).text

    @property
    def footer(self) -> str:
        return self.board.query_one(KeyBar).text

    @property
    def list(self) -> str:
        return self.board.query_one(AgentList).text

    @property
    def view(self) -> str:
        return self.board.query_one("#view", TextView).text

    @property
    def said(self) -> str:
        """All sentences that were shown in the corner, also those that have gone again."""
        return "\n".join(self.app.noted)

    @property
    def painted(self) -> str:
        """The characters of the whole screen, as the terminal gets them."""
        screen = self.app.screen
        strips = screen._compositor.render_strips(screen.size)
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)


@pytest.fixture
def stage(world: World) -> Stage:
    return Stage(world)
