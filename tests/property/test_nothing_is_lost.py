"""Any order of making, working, removing, crashing, restoring and sweeping: all work is there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)

from tests.workshop import Workshop, write
from tmuxorch.model import Agent, HistoryEntry
from tmuxorch.service.sweep import sweep

Files = dict[str, str]
# Tracked, new, ignored, deep, and a name that needs quoting.
PATHS = ("README", "src/app.py", "new.txt", "a.log", "build/out", "deep/er/x", 'odd "näme"\n')
CRASHES = ("claimed", "ended", "closed", "saved", "buried", "moved", "worktree", "branch", "files")
BASE: Files = {
    "README": "hello\n",
    "src/app.py": "print('hi')\n",
    "run.sh": "#!/bin/sh\n",
    "link": "hello\n",
    ".gitignore": "*.log\n.env\nbuild/\n",
}


class Crash(Exception):
    """Somebody pulled the plug between two steps."""


class Life(RuleBasedStateMachine):
    """The model is what each worker's files say; the world must agree, before and after."""

    workers: Bundle[Agent] = Bundle("workers")
    removed: Bundle[HistoryEntry] = Bundle("removed")

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.shop = Workshop.make(Path(tempfile.mkdtemp(prefix="to-life-")), self.patch)
        self.live: dict[str, tuple[Agent, Files]] = {}
        self.gone: dict[str, Files] = {}

    def teardown(self) -> None:
        try:
            for entry in self.shop.ctx.store.history():
                if entry.task.id in self.gone:
                    top = self.shop.restore(entry).task.worktree
                    assert self.read(top) == self.gone[entry.task.id]
        finally:
            self.shop.close()
            self.patch.undo()

    @rule(target=workers)
    def create(self) -> Agent:
        agent = self.shop.worker()
        self.live[agent.task.id] = agent, dict(BASE)
        return agent

    @rule(agent=workers, path=st.sampled_from(PATHS), text=st.text("ab\r\n", max_size=6))
    def edit(self, agent: Agent, path: str, text: str) -> None:
        write(Path(agent.task.worktree) / path, text)
        self.live[agent.task.id][1][path] = text
        if path == "README":
            self.live[agent.task.id][1]["link"] = text

    @rule(agent=workers)
    def delete(self, agent: Agent) -> None:
        (Path(agent.task.worktree) / "run.sh").unlink(missing_ok=True)
        self.live[agent.task.id][1].pop("run.sh", None)

    @rule(agent=workers, everything=st.booleans())
    def commit(self, agent: Agent, everything: bool) -> None:
        self.shop.sh(agent.task.worktree, "add", "-A" if everything else "README")
        self.shop.sh(agent.task.worktree, "commit", "-qm", "some", "--allow-empty")

    @rule(agent=workers)
    def detach(self, agent: Agent) -> None:
        self.shop.sh(agent.task.worktree, "checkout", "-q", "--detach")

    @rule(target=removed, agent=consumes(workers))
    def remove(self, agent: Agent) -> HistoryEntry:
        entry = self.shop.remove(agent)
        self.gone[entry.task.id] = self.live.pop(agent.task.id)[1]
        return entry

    @rule(target=removed, agent=consumes(workers), steps=st.lists(st.sampled_from(CRASHES)))
    def crash_and_remove(self, agent: Agent, steps: list[str]) -> HistoryEntry:
        for step in steps:
            self.shop.ctx.checkpoint = self.plug_puller(f"remove:{step}")
            try:
                if self.shop.ctx.store.agent(agent.task.id) is not None:
                    self.shop.remove(agent)
            except Crash:
                pass
        self.shop.ctx.checkpoint = lambda _: None
        if self.shop.ctx.store.agent(agent.task.id) is not None:
            self.shop.remove(agent)
        self.gone[agent.task.id] = self.live.pop(agent.task.id)[1]
        entry = self.shop.ctx.store.history_entry(agent.task.id)
        assert entry is not None
        return entry

    def plug_puller(self, where: str) -> Callable[[str], None]:
        def checkpoint(step: str) -> None:
            if step == where:
                raise Crash

        return checkpoint

    @rule(target=removed, agent=consumes(workers))
    def lose_the_record_and_sweep(self, agent: Agent) -> HistoryEntry:
        self.shop.forget(agent)
        self.sweep()
        self.gone[agent.task.id] = self.live.pop(agent.task.id)[1]
        entry = self.shop.ctx.store.history_entry(agent.task.id)
        assert entry is not None
        return entry

    @rule(agent=consumes(workers))
    def lose_the_directory_and_sweep(self, agent: Agent) -> None:
        shutil.rmtree(agent.task.worktree)
        self.live.pop(agent.task.id)
        self.sweep()

    @rule()
    def sweep(self) -> None:
        for orphan in sweep.observe_orphans(self.shop.ctx):
            sweep.apply(self.shop.ctx, orphan)

    @rule(target=workers, entry=removed)
    def restore(self, entry: HistoryEntry) -> Agent:
        self.shop.sh(self.shop.repo, "gc", "-q", "--prune=now")
        agent = self.shop.restore(entry)
        self.live[agent.task.id] = agent, dict(self.gone[entry.task.id])
        return agent

    @rule(agent=workers)
    def merge_into_main(self, agent: Agent) -> None:
        head = self.shop.sh(agent.task.worktree, "rev-parse", "HEAD").strip()
        self.shop.sh(self.shop.repo, "merge", "-q", "--no-edit", "-s", "ours", head)

    @invariant()
    def every_live_worker_has_its_files(self) -> None:
        assert {agent.task.id for agent in self.shop.ctx.store.agents()} == set(self.live)
        for agent, files in self.live.values():
            assert self.read(agent.task.worktree) == files

    @invariant()
    def every_removed_one_has_one_row_and_nothing_is_left_of_it(self) -> None:
        rows = [entry.task.id for entry in self.shop.ctx.store.history()]
        assert len(rows) == len(set(rows))
        assert set(self.gone) <= set(rows)
        listed = self.shop.sh(self.shop.repo, "worktree", "list", "--porcelain")
        assert listed.count("worktree ") == 1 + len(self.live)

    def read(self, top: str) -> Files:
        found = {}
        for directory, _, names in os.walk(top):
            for name in names:
                path = Path(directory) / name
                if name != ".git":
                    text = path.read_bytes().decode() if path.exists() else ""
                    found[str(path.relative_to(top))] = text
        return found


Life.TestCase.settings = settings(
    max_examples=12,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestLife = Life.TestCase
