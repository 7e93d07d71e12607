"""What must be true at every quiet moment, seen without the code that is under test."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.rawtree import differences
from tests.soak.ledger import Ledger
from tests.soak.world import World, wait_until

Found = Iterator[tuple[str, str]]
Row = dict[str, Any]
ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{12}(?![0-9a-f])")
# What is deleted in the background, and windows that tmux closes, need a moment.
SETTLE_S = 20.0
PERSONS_GIT = (
    ("worktree", "list"),
    ("status",),
    ("fsck", "--connectivity-only"),
    ("gc", "--auto"),
)


class Promises:
    """All checks of one world; each yields what it finds broken."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self.world = world
        self.ledger = ledger
        self.not_ours = world.not_ours()

    def check(self, rows: list[Row], history: list[Row]) -> Found:
        """Everything but the work itself, which `nothing_lost` looks at."""
        yield from self.no_half_done(rows)
        yield from self.list_is_true(rows)
        yield from self.nothing_left(rows, history)
        yield from self.only_ours_touched()
        yield from self.persons_git_works()

    def nothing_lost(self) -> Found:
        """Every listed agent's worktree has what it had."""
        for known in self.ledger.live.values():
            for loss in self.ledger.losses(known):
                yield "lost", f"{known.id} in {known.worktree}: {loss}"

    def no_half_done(self, rows: list[Row]) -> Found:
        for row in rows:
            if row["state"] in ("creating", "removing"):
                yield f"stuck-{row['state']}", f"{row['name']} ({row['id']})"

    def list_is_true(self, rows: list[Row]) -> Found:
        alive = {p.pid: p for p in self.world.processes()}
        for row in rows:
            pid, said = row["process"]["pid"], row["process"]["alive"]
            is_alive = pid in alive and alive[pid].agent == row["id"]
            words = f"{row['name']} ({row['id']}) is {row['state']}, {row['status']}, pid {pid}, "
            words += (
                f"said to be {'alive' if said else 'dead'}, is {'alive' if is_alive else 'dead'}"
            )
            if is_alive and (row["state"] in ("exited", "lost") or not said):
                yield "live-shown-dead", words
            if not is_alive and (
                said or (row["state"] == "running" and row["status"] != "starting")
            ):
                yield "dead-shown-alive", words
            if row["status"] == "unknown":
                yield "unknown-when-quiet", words

    def nothing_left(self, rows: list[Row], history: list[Row]) -> Found:
        ids = {row["id"] for row in rows}

        def processes() -> list[str]:
            left = [p for p in self.world.processes() if p.owner and p.owner not in ids]
            return [f"{p.pid} {p.command} of {p.owner}" for p in left]

        def panes() -> list[str]:
            said = self.world.tmux("list-panes", "-a", "-F", "#{@tmuxorch_id} #{pane_id}").stdout
            lines = [line for line in said.splitlines() if not line.startswith(" ")]
            return [line for line in lines if line.split()[0] not in ids]

        def directories() -> list[str]:
            known = {row["worktree"] for row in rows}
            saved = {row["id"] for row in history}
            return [path for path in self._worktrees(saved) if path not in known]

        for kind, look in (("process", processes), ("window", panes), ("worktree", directories)):
            if not wait_until(lambda look=look: not look(), SETTLE_S):  # type: ignore[misc]
                for what in look():
                    yield f"left-{kind}", what
        yield from self._left_in_git(rows, history)
        yield from self._left_files(ids, ids | {row["id"] for row in history})

    def _worktrees(self, saved: set[str]) -> list[str]:
        """What lies where worktrees are; hidden there are saves, the trash and marks."""
        found = list(self.world.worktrees.glob("*/[!.]*"))
        hidden = self.world.worktrees.glob("*/.*/*")
        found += [path for path in hidden if path.parent.name == ".trash" or path.name not in saved]
        return [str(path) for path in found]

    def _left_in_git(self, rows: list[Row], history: list[Row]) -> Found:
        own = self.world.repo / ".git"
        tops = {str(self.world.mine), *(row["worktree"] for row in rows)}
        for admin in (own / "worktrees").iterdir():
            try:
                top = (admin / "gitdir").read_text().strip().removesuffix("/.git")
            except OSError as error:
                top = error.strerror or ""
            if top not in tops:
                yield "left-administration", f"{admin}: {top}"
        for path in own.rglob("*.lock"):
            yield "left-lock", str(path)
        for path in own.rglob("tmuxorch-*"):
            if "refs" not in path.parts and "logs" not in path.parts:
                yield "left-temporary", str(path)
        if (own / "packed-refs.new").exists():
            yield "left-temporary", str(own / "packed-refs.new")
        used = {row["branch"] for row in rows}
        for base in ("main", "integration"):
            asked = ("for-each-ref", "--format=%(refname:short)", f"--merged={base}")
            for branch in self.world.git(*asked, "refs/heads/tmuxorch", ok=False).split():
                if branch not in used and not _is_kept(branch, history):
                    yield "left-branch", f"{branch} is all in {base}"
        ids = {row["id"] for row in (*rows, *history)}
        for ref in self.world.git("for-each-ref", "--format=%(refname)", "refs/tmuxorch").split():
            if not ids & set(ref.split("/")):
                yield "left-ref", ref

    def _left_files(self, listed: set[str], ids: set[str]) -> Found:
        for directory, _, names in os.walk(self.world.state):
            for name in (*names, os.path.basename(directory)):
                path = os.path.join(directory, name)
                of = set(ID.findall(os.path.relpath(path, self.world.state)))
                # A live agent's own half-written files go with it.
                if of - ids or (name.endswith((".part", ".tmp")) and not of & listed):
                    yield "left-file", path
                if name.startswith("bug-"):
                    yield "bug-log", Path(path).read_text(errors="replace")
        for path_ in (self.world.directory / "tmp").iterdir():
            yield "left-temporary", str(path_)

    def only_ours_touched(self) -> Found:
        *trees_before, refs_before = self.not_ours
        *trees, refs = self.world.not_ours()
        if refs != refs_before:
            yield "touched", f"the person's branches were {refs_before} and are {refs}"
        for top, before, now in zip(
            (self.world.repo, self.world.mine), trees_before, trees, strict=True
        ):
            for what in differences(before, now):
                yield "touched", f"{top}: {what}"

    def persons_git_works(self) -> Found:
        for args in PERSONS_GIT:
            done = subprocess.run(
                ["git", *args],
                cwd=self.world.repo,
                env=self.world.persons,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            if done.returncode != 0:
                said = os.fsdecode(done.stderr)
                yield "persons-git", f"git {' '.join(args)}: {done.returncode}: {said}"

    def server_lives(self, killed: bool) -> Found:
        """The tmux server answers, and dies only if it is killed; the person's window stays."""
        try:
            pid = self.world.server_pid()
        except subprocess.TimeoutExpired:
            yield "tmux-hangs", "the server does not answer"
            return
        foreign = self.world.foreign
        if foreign is None or killed:
            return
        if pid != foreign[0]:
            servers = [p.pid for p in self.world.processes() if p.name == "tmux: server"]
            yield "tmux-died", f"the server was pid {foreign[0]} and is {pid}; there are {servers}"
        elif "mine alone" not in self.world.tmux("capture-pane", "-p", "-t", foreign[1]).stdout:
            yield "touched", f"the person's window {foreign[1]} is gone"


def _is_kept(branch: str, history: list[Row]) -> bool:
    """Whether the person asked for the branch to stay."""
    return any(row["branch"] == branch and row["branch_kept"] for row in history)
