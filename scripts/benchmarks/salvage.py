"""What saving and removing a big worktree costs, as ratios to what git alone takes for it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median

from measuring import PATH, Row, main, run, took_ms

from tmuxorch import config as configuration
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store.rows import agent_of
from tmuxorch.model import Agent, AgentId, HistoryEntry, Kind, Reason, State, Status
from tmuxorch.service import places
from tmuxorch.service.context import open_context
from tmuxorch.service.removal import aside, removal, restoring

FILES, NEW = 20_000, 1_000
ROUNDS = 3


class World:
    """A repository of 20,000 files, and worktrees of it that workers left."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        os.environ.clear()  # the adapters hand on the environment they find
        os.environ.update(
            PATH=PATH,
            HOME=str(directory),
            LANG="C.UTF-8",
            GIT_CONFIG_NOSYSTEM="1",
            TMUXORCH_STATE_DIR=str(directory / "state"),
            TMUXORCH_WORKTREES_DIR=str(directory / "worktrees"),
        )
        self.numbers = count()
        self.repo = directory / "repo"
        run("git", "init", "-q", str(self.repo))
        for n in range(FILES):
            path = self.repo / f"part{n % 200}" / f"module{n}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"# module {n}\n" + "value = 'some text'\n" * 20)
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
        self.git(self.repo, "add", ".")
        self.git(self.repo, *who, "commit", "-q", "-m", "first")
        self.base = self.git(self.repo, "rev-parse", "HEAD").strip()
        self.ctx = open_context(os.environ, socket=str(directory / "no-tmux"))
        self.config = configuration.load(str(directory / "no-config"), None)

    def git(self, directory: Path | str, *arguments: str) -> str:
        return run("git", "-C", str(directory), *arguments)

    def worker(self) -> Agent:
        """A worker that has ended, in a fresh worktree."""
        agent_id = AgentId(os.urandom(6).hex())
        name = f"w{next(self.numbers)}"
        agent = agent_of(
            id=agent_id, name=name, repo=str(self.repo), task="", agent="sh", kind=Kind.WORKER,
            state=State.EXITED, status=Status.DONE, branch=f"tmuxorch/{name}", branch_made=True,
            base="main", base_commit=self.base, worktree=str(self.directory / "worktrees" / name),
            command=("sh",), socket=self.ctx.socket, stopped=True, created_at=0.0,
        )  # fmt: skip
        self.ctx.store.add(agent)
        places.mark(agent.task.worktree)
        git.add_worktree(
            git.find_repo(agent.task.repo),
            agent.task.worktree,
            branch=agent.task.branch,
            new_branch=True,
            commit=agent.task.base_commit,
            reason=self.ctx.lock_reason(agent),
            marker={},
        )
        places.seal(agent.task.worktree)
        settle(agent.task.worktree)
        return agent

    def plain(self) -> str:
        """A worktree that git alone made."""
        path = str(self.directory / "plain" / str(next(self.numbers)))
        self.git(self.repo, "worktree", "add", "-q", "--detach", path)
        settle(path)
        return path

    def remove(self, agent: Agent) -> HistoryEntry:
        return removal.remove(self.ctx, agent, reason=Reason.USER)

    def wait_for_trash(self) -> None:
        """Until the background has deleted it, so that nobody else pays for it."""
        trash = self.directory / "worktrees" / ".trash"
        while trash.exists() and any(trash.iterdir()):
            time.sleep(0.05)


def settle(worktree: str) -> None:
    """Older files than their index, as in life: git need not read them to know them."""
    time.sleep(1.1)
    run("git", "-C", worktree, "status", "--porcelain")


def add_new_files(worktree: str, seed: str) -> None:
    """New content each time: an object that exists already costs nothing."""
    for n in range(NEW):
        path = Path(worktree) / f"new{n % 20}" / f"fresh{n}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {seed} {n}\n" + "value = 'some text'\n" * 20)


@contextmanager
def private_world() -> Iterator[World]:
    directory = Path(os.path.realpath(tempfile.mkdtemp(prefix="to-bench-", dir="/tmp")))
    world = World(directory)
    try:
        yield world
    finally:
        world.ctx.store.close()
        shutil.rmtree(directory, ignore_errors=True)


def alternate(*works: Callable[[], float], rounds: int = ROUNDS) -> list[float]:
    """The median of each in ms, taking turns after a round that does not count."""
    times = [[work() for work in works] for _ in range(rounds + 1)]
    return [median(column) for column in zip(*times[1:], strict=True)]


def save_rows() -> Iterator[Row]:
    """20,000 files and 1,000 new ones, the raw walk included, against `git add -A`."""
    with private_world() as world:
        repo = git.find_repo(str(world.repo))
        agent, plain = world.worker(), world.plain()
        own = world.git(plain, "rev-parse", "--absolute-git-dir").strip()
        index = str(world.directory / "index")
        place = places.of_save(world.ctx, agent)
        env = ("env", f"GIT_INDEX_FILE={index}", "git", "-C", plain)

        def save() -> float:
            add_new_files(agent.task.worktree, f"save {next(world.numbers)}")
            took = took_ms(lambda: aside.take(world.ctx, repo, agent, 10**9))
            aside.put_back(agent, place)
            return took

        def bare() -> float:
            add_new_files(plain, f"bare {next(world.numbers)}")
            return took_ms(add_bare)

        def add_bare() -> None:
            shutil.copy2(f"{own}/index", index)
            run(*env, "add", "-A")
            run(*env, "write-tree")

        saved, added = alternate(save, bare, rounds=9)
        yield Row("save 20,000 files + 1,000 new / git add", saved, added, 1.4)


def remove_rows() -> Iterator[Row]:
    """A clean worktree of 20,000 files, as long as the person waits."""
    with private_world() as world:

        def remove() -> float:
            agent = world.worker()
            took = took_ms(lambda: world.remove(agent))
            world.wait_for_trash()
            return took

        def bare() -> float:
            path = world.plain()
            return took_ms(lambda: world.git(world.repo, "worktree", "remove", path))

        removed, plain = alternate(remove, bare)
        yield Row("remove 20,000 files / git worktree remove", removed, plain, 1.2)


def restore_rows() -> Iterator[Row]:
    """The way back, against the checkout it consists of; no target."""
    with private_world() as world:

        def restore() -> float:
            agent = world.worker()
            add_new_files(agent.task.worktree, agent.task.id)
            entry = world.remove(agent)
            world.wait_for_trash()
            took = took_ms(lambda: restoring.restore(world.ctx, world.config, entry))
            back = world.ctx.store.agents()[0]
            world.remove(back)
            world.wait_for_trash()
            return took

        def bare() -> float:
            path = str(world.directory / "plain" / str(next(world.numbers)))
            took = took_ms(lambda: world.git(world.repo, "worktree", "add", "-q", "--detach", path))
            world.git(world.repo, "worktree", "remove", path)
            return took

        restored, plain = alternate(restore, bare)
        yield Row("restore 21,000 files / git worktree add", restored, plain, None)


PARTS = {"save": save_rows, "remove": remove_rows, "restore": restore_rows}


if __name__ == "__main__":
    sys.exit(main("salvage", __doc__, PARTS))
