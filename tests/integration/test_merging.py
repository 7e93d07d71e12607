"""Merging on real git: all of the work arrives, or nothing has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import changed
from tests.conftest import World
from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.store.rows import agent_of
from tmuxorch.errors import CannotMerge, GitFailed, MergeConflict, TmuxorchError, WorkAtStake
from tmuxorch.model import Agent, AgentId, Kind, State, Status
from tmuxorch.service import places
from tmuxorch.service.context import Context, open_context
from tmuxorch.service.landing import merging
from tmuxorch.service.landing.merging import How, Merged


class Workshop:
    """A repository with one worker on `tmuxorch/a`, made without tmux."""

    def __init__(self, world: World, ctx: Context) -> None:
        self.world, self.ctx, self.repo = world, ctx, world.repo
        self.agent = self.add_worker("a")
        self.tree = Path(self.agent.task.worktree)

    def add_worker(self, name: str, *, base: str = "main", state: State = State.EXITED) -> Agent:
        agent = agent_of(
            id=AgentId(os.urandom(6).hex()), name=name, repo=str(self.repo),
            task=f"Improve {name}\nwith details", agent="sh", kind=Kind.WORKER, state=state,
            status=Status.DONE, branch=f"tmuxorch/{name}", branch_made=True, base=base,
            base_commit=self.at(base), worktree=str(self.world.worktrees / name), command=("sh",),
            socket=self.world.socket, created_at=1.0,
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
        return agent

    def git(self, *args: str, cwd: Path | None = None) -> str:
        return self.world.git(*args, cwd=cwd or self.repo).strip()

    def at(self, revision: str) -> str:
        return self.git("rev-parse", revision)

    def commit(self, where: Path, name: str, text: str, title: str | None = None) -> str:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text)
        self.git("add", "-f", name, cwd=where)
        self.git("commit", "-q", "-m", title or f"change {name}", cwd=where)
        return self.git("rev-parse", "HEAD", cwd=where)

    def merge(self, how: How = How.MERGE, **options: object) -> Merged:
        return merging.merge(self.ctx, self.agent, how=how, **options)  # type: ignore[arg-type]

    def facts(self) -> dict[str, object]:
        """Everything that a refused merge must leave alone."""
        files = [
            (str(p), p.read_bytes())
            for top in (self.repo, self.world.worktrees)
            for p in sorted(top.rglob("*"))
            if p.is_file() and ".git/" not in str(p)
        ]
        refs = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        return {"files": files, "refs": refs, "status": self.git("status", "--porcelain")}


@pytest.fixture
def shop(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    for name in [n for n in os.environ if n.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in world.environ.items():
        monkeypatch.setenv(name, value)
    ctx = open_context(world.environ, socket=world.socket)
    yield Workshop(world, ctx)
    ctx.store.close()


def refused(shop: Workshop, how: How = How.MERGE, **options: object) -> TmuxorchError:
    """The merge is refused, and not a byte or ref has changed."""
    before = shop.facts()
    with pytest.raises(TmuxorchError) as refusal:
        shop.merge(how, **options)
    assert shop.facts() == before
    return refusal.value


# -- what arrives ------------------------------------------------------------------------


@pytest.mark.parametrize("how", [How.MERGE, How.REBASE])
def test_a_base_that_has_not_moved_is_forwarded_with_its_checkout(shop: Workshop, how: How) -> None:
    first = shop.at("main")
    shop.commit(shop.tree, "one.txt", "1\n")
    head = shop.commit(shop.tree, "README", "better\n")
    done = shop.merge(how)
    assert (done.base, done.before, done.after, done.head) == ("main", first, head, head)
    assert [commit.title for commit in done.commits] == ["change one.txt", "change README"]
    assert shop.at("main") == head
    assert (shop.repo / "README").read_text() == "better\n"
    assert shop.git("status", "--porcelain") == ""


def test_a_base_that_has_moved_gets_a_merge_commit(shop: Workshop) -> None:
    head = shop.commit(shop.tree, "one.txt", "1\n")
    moved = shop.commit(shop.repo, "two.txt", "2\n")
    done = shop.merge()
    assert shop.git("log", "-1", "--format=%P", "main").split() == [moved, head]
    message = shop.git("log", "-1", "--format=%B", "main")
    assert message == "Merge branch 'tmuxorch/a'\n\nImprove a"
    assert shop.git("log", "-1", "--format=%an", "main") == "Test"
    assert {p.name for p in shop.repo.glob("*.txt")} == {"one.txt", "two.txt"}
    assert [commit.title for commit in done.commits] == ["change one.txt"]


def test_a_squash_is_one_commit_that_lists_what_it_holds(shop: Workshop) -> None:
    base = shop.at("main")
    shop.commit(shop.tree, "one.txt", "1\n", "add one")
    shop.commit(shop.tree, "two.txt", "2\n", "add two")
    shop.merge(How.SQUASH)
    assert shop.git("log", "-1", "--format=%P", "main") == base
    assert shop.git("log", "-1", "--format=%B", "main") == "Improve a\n\n* add one\n* add two"
    assert (shop.repo / "two.txt").read_text() == "2\n"
    again = shop.merge(How.SQUASH)
    assert not again.changed


def test_a_squash_of_one_commit_keeps_its_message(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n", "add one\n\nbecause")
    shop.merge(How.SQUASH)
    assert shop.git("log", "-1", "--format=%B", "main") == "add one\n\nbecause"


@pytest.mark.parametrize("how", [How.MERGE, How.SQUASH])
def test_a_message_of_ones_own_is_taken(shop: Workshop, how: How) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    shop.commit(shop.repo, "two.txt", "2\n")
    shop.merge(how, message="Größer\n\nbody\n\n")
    assert shop.git("log", "-1", "--format=%B", "main") == "Größer\n\nbody"


def test_a_rebase_copies_each_commit_with_author_and_message(shop: Workshop) -> None:
    (shop.tree / "one.txt").write_text("1\n")
    shop.git("add", ".", cwd=shop.tree)
    who = ("--author", "Ünal <u@example.org>", "--date", "2001-02-03T04:05:06+0300")
    shop.git("commit", "-q", *who, "-m", "add one\n\nwhy", cwd=shop.tree)
    shop.commit(shop.tree, "one.txt", "1\n2\n", "more")
    moved = shop.commit(shop.repo, "two.txt", "2\n")
    shop.merge(How.REBASE)
    history = shop.git("log", "--reverse", "--format=%P|%an <%ae>|%aI|%cn|%B", f"{moved}..main")
    first, second = [line for line in history.split("\n") if "|" in line]
    assert first == f"{moved}|Ünal <u@example.org>|2001-02-03T04:05:06+03:00|Test|add one"
    assert second.startswith(shop.at("main^") + "|Test")
    assert (shop.repo / "one.txt").read_text() == "1\n2\n"
    assert shop.git("status", "--porcelain") == ""


def test_a_rebase_leaves_out_what_the_base_has_already(shop: Workshop) -> None:
    shop.commit(shop.tree, "README", "one\n", "first")
    shop.commit(shop.repo, "two.txt", "2\n")
    shop.merge(How.REBASE)
    shop.commit(shop.tree, "README", "two\n", "second")
    done = shop.merge(How.REBASE)
    assert [commit.title for commit in done.commits] == ["second"]
    assert (shop.repo / "README").read_text() == "two\n"
    assert shop.git("log", "--format=%s", "-3", "main").split("\n") == [
        *("second", "first", "change two.txt"),
    ]


@pytest.mark.parametrize("again", list(How))
@pytest.mark.parametrize("how", list(How))
def test_work_that_was_merged_before_is_said_to_be_there(
    shop: Workshop, how: How, again: How
) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    shop.commit(shop.tree, "README", "better\n")
    shop.commit(shop.repo, "two.txt", "2\n")
    shop.merge(how)
    head = shop.at("main")
    done = shop.merge(again)
    assert (done.changed, done.commits, shop.at("main")) == (False, (), head)


def test_a_worker_without_work_has_nothing_to_merge(shop: Workshop) -> None:
    assert not shop.merge().changed


def test_a_merge_is_in_the_decision_log(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    done = shop.merge()
    rows = shop.ctx.store._read(
        "SELECT * FROM events WHERE agent = ? AND what = 'merged'", done.agent.task.id
    )
    assert [row["why"] for row in rows] == [
        f"merge, 1 commits into main: {done.before[:10]}..{done.after[:10]}"
    ]


def test_a_base_that_is_checked_out_nowhere_is_moved_alone(shop: Workshop) -> None:
    shop.git("checkout", "-q", "-b", "elsewhere")
    (shop.repo / "README").write_text("an edit\n")
    head = shop.commit(shop.tree, "README", "better\n")
    shop.merge()
    assert shop.at("main") == head
    assert (shop.repo / "README").read_text() == "an edit\n"
    assert "tmuxorch" in shop.git("reflog", "-1", "main")


def test_a_base_in_a_linked_worktree_is_brought_forward_there(shop: Workshop) -> None:
    shop.git("checkout", "-q", "--detach")
    other = shop.world.directory / "other tree"
    shop.git("worktree", "add", "-q", str(other), "main")
    shop.commit(shop.tree, "README", "better\n")
    shop.merge()
    assert (other / "README").read_text() == "better\n"
    assert shop.git("status", "--porcelain", cwd=other) == ""


def test_edits_beside_the_merge_stay_in_the_checkout(shop: Workshop) -> None:
    shop.commit(shop.tree, "README", "better\n")
    (shop.repo / "src" / "app.py").write_text("my edit\n")
    (shop.repo / "mine.txt").write_text("untracked\n")
    (shop.repo / "staged.txt").write_text("staged\n")
    shop.git("add", "staged.txt")
    shop.merge()
    assert (shop.repo / "README").read_text() == "better\n"
    assert (shop.repo / "src" / "app.py").read_text() == "my edit\n"
    assert (shop.repo / "mine.txt").read_text() == "untracked\n"
    assert shop.git("diff", "--cached", "--name-only") == "staged.txt"


def test_work_on_another_branch_or_detached_is_merged_too(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    shop.git("checkout", "-q", "-b", "feature", cwd=shop.tree)
    shop.commit(shop.tree, "two.txt", "2\n")
    shop.git("checkout", "-q", "--detach", cwd=shop.tree)
    head = shop.commit(shop.tree, "three.txt", "3\n")
    assert shop.merge().after == head


def test_commits_of_a_worktree_that_is_gone_are_merged(shop: Workshop) -> None:
    head = shop.commit(shop.tree, "one.txt", "1\n")
    shutil.rmtree(shop.tree)
    assert shop.merge().after == head


def test_uncommitted_files_are_committed_on_demand(shop: Workshop) -> None:
    (shop.tree / "README").write_text("better\n")
    (shop.tree / "new.txt").write_text("new\n")
    done = shop.merge(commit=True)
    assert [commit.title for commit in done.commits] == ["Improve a"]
    assert (shop.repo / "new.txt").read_text() == "new\n"
    assert shop.git("status", "--porcelain", cwd=shop.tree) == ""


def test_the_merge_settings_of_the_person_hold(shop: Workshop) -> None:
    head = shop.commit(shop.tree, "one.txt", "1\n")
    shop.git("config", "merge.ff", "false")
    shop.git("config", "branch.main.mergeOptions", "--squash --no-commit -s ours")
    shop.merge()
    assert shop.git("log", "-1", "--format=%P", "main").split()[1] == head
    assert (shop.repo / "one.txt").exists()
    shop.git("config", "merge.ff", "only")
    shop.commit(shop.tree, "three.txt", "3\n")
    assert "--rebase" in refused(shop).message
    assert shop.merge(How.REBASE).changed


def test_a_bare_repository_is_merged_in(shop: Workshop, world: World) -> None:
    bare = world.directory / "bare.git"
    shop.git("clone", "-q", "--bare", str(shop.repo), str(bare))
    shop.repo = bare
    agent = shop.add_worker("b")
    head = shop.commit(Path(agent.task.worktree), "one.txt", "1\n")
    merging.merge(shop.ctx, agent, how=How.MERGE)
    assert shop.at("main") == head


# -- what is refused ---------------------------------------------------------------------


@pytest.mark.parametrize("how", list(How))
def test_a_conflict_is_told_by_file_and_changes_nothing(shop: Workshop, how: How) -> None:
    shop.commit(shop.tree, "README", "theirs\n")
    shop.commit(shop.tree, "a b.txt", "theirs\n")
    shop.commit(shop.repo, "README", "ours\n")
    shop.commit(shop.repo, "a b.txt", "ours\n")
    refusal = refused(shop, how)
    assert isinstance(refusal, MergeConflict)
    assert "README" in refusal.files
    assert how is How.REBASE or refusal.files == ("README", "a b.txt")
    assert "README" in refusal.message
    assert "main" in refusal.message


@pytest.mark.parametrize("kind", ["edit", "staged", "untracked", "ignored", "hidden"])
def test_a_file_that_would_be_overwritten_stops_it(shop: Workshop, kind: str) -> None:
    name = {"untracked": "new.txt", "ignored": "new.log"}.get(kind, "README")
    shop.commit(shop.tree, name, "theirs\n")
    (shop.repo / name).write_text("precious\n")
    if kind == "staged":
        shop.git("add", name)
    if kind == "hidden":
        shop.git("update-index", "--assume-unchanged", name)
    refusal = refused(shop)
    assert name in refusal.message
    assert str(shop.repo) in refusal.message


@pytest.mark.parametrize("name", ["README", "new.txt"])
def test_uncommitted_work_is_listed(shop: Workshop, name: str) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    (shop.tree / name).write_text("unfinished\n")
    refusal = refused(shop)
    assert name in refusal.message
    assert "--commit" in refusal.message


def test_ignored_files_are_no_obstacle(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    (shop.tree / "noise.log").write_text("noise\n")
    assert shop.merge().changed


def test_an_unfinished_rebase_of_the_worker_stops_it(shop: Workshop) -> None:
    shop.commit(shop.tree, "README", "theirs\n")
    shop.commit(shop.repo, "README", "ours\n")
    with pytest.raises(subprocess.CalledProcessError):
        shop.git("rebase", "main", cwd=shop.tree)
    assert "rebase" in refused(shop).message


def test_a_base_under_rebase_stops_it(shop: Workshop) -> None:
    shop.commit(shop.repo, "README", "ours\n")
    shop.git("branch", "other", "HEAD^")
    shop.commit(shop.tree, "one.txt", "1\n")
    elsewhere = shop.world.directory / "elsewhere"
    shop.git("worktree", "add", "-q", str(elsewhere), "other")
    shop.commit(elsewhere, "README", "others\n")
    with pytest.raises(subprocess.CalledProcessError):
        shop.git("rebase", "other")
    assert "being rebased" in refused(shop).message


@pytest.mark.parametrize("base", ["v1", "origin/main", "HEAD"])
def test_a_base_that_is_no_branch_says_how_to_choose_one(shop: Workshop, base: str) -> None:
    shop.git("tag", "v1")
    shop.git("update-ref", "refs/remotes/origin/main", "HEAD")
    shop.agent = changed(shop.agent, base=base)
    shop.commit(shop.tree, "one.txt", "1\n")
    refusal = refused(shop)
    assert base in refusal.message
    assert "--into" in refusal.message
    assert shop.merge(into="main").base == "main"


def test_a_base_that_is_gone_or_its_own_is_refused(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    shop.git("checkout", "-q", "-b", "other")
    assert "its own branch" in refused(shop, into="tmuxorch/a").message
    assert "no local branch nowhere" in refused(shop, into="nowhere").message
    shop.git("branch", "-q", "-D", "main")
    assert "its base main is not a local branch" in refused(shop).message


def test_a_checkout_that_is_missing_is_not_forgotten(shop: Workshop) -> None:
    shop.git("checkout", "-q", "--detach")
    other = shop.world.directory / "other"
    shop.git("worktree", "add", "-q", str(other), "main")
    shop.commit(shop.tree, "one.txt", "1\n")
    other.rename(shop.world.directory / "unplugged")
    assert "missing" in refused(shop).message


def test_another_running_agents_worktree_is_not_changed_under_it(shop: Workshop) -> None:
    other = shop.add_worker("b", state=State.RUNNING)
    shop.agent = changed(shop.agent, base=other.task.branch)
    shop.commit(shop.tree, "one.txt", "1\n")
    assert "tmuxorch stop b" in refused(shop).message
    shop.ctx.store.swap(other, expect=[State.RUNNING], state=State.EXITED)
    assert shop.merge().changed
    assert (Path(other.task.worktree) / "one.txt").exists()


def test_a_head_that_lacks_its_branchs_commits_is_refused(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    shop.git("checkout", "-q", "--detach", "HEAD^", cwd=shop.tree)
    assert "lacks commits" in refused(shop).message


def test_merge_commits_cannot_be_rebased(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    shop.commit(shop.repo, "two.txt", "2\n")
    shop.git("merge", "-q", "main", cwd=shop.tree)
    shop.commit(shop.repo, "three.txt", "3\n")
    assert "--squash" in refused(shop, How.REBASE).message
    assert shop.merge(How.SQUASH).changed


def test_strangers_histories_are_not_joined(shop: Workshop) -> None:
    shop.git("checkout", "-q", "--orphan", "island", cwd=shop.tree)
    shop.git("commit", "-q", "-m", "island", cwd=shop.tree)
    shop.git("branch", "-q", "-D", "tmuxorch/a", cwd=shop.tree)
    for how in How:
        assert "no history" in refused(shop, how).message


@pytest.mark.parametrize("how", [How.MERGE, How.SQUASH, How.REBASE])
def test_an_unknown_person_is_told_what_to_set(shop: Workshop, how: How) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    shop.commit(shop.repo, "two.txt", "2\n")
    (shop.world.home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    assert "user.email" in refused(shop, how).message


def test_a_commit_that_cannot_be_signed_is_not_made(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    shop.commit(shop.repo, "two.txt", "2\n")
    shop.git("config", "commit.gpgSign", "true")
    shop.git("config", "gpg.program", "false")
    assert "signed" in refused(shop).message


def test_a_hook_that_forbids_the_commit_is_told_and_nothing_is_merged(shop: Workshop) -> None:
    hook = shop.repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'error: lint says no' >&2; exit 1\n")
    hook.chmod(0o755)
    (shop.tree / "README").write_text("better\n")
    with pytest.raises(GitFailed, match="lint says no"):
        shop.merge(commit=True)
    assert (shop.tree / "README").read_text() == "better\n"


def test_a_base_that_moves_meanwhile_is_not_moved_back(shop: Workshop) -> None:
    shop.git("checkout", "-q", "--detach")
    shop.commit(shop.tree, "one.txt", "1\n")
    tip = shop.at("main")
    rival = shop.git("commit-tree", "-p", tip, "-m", "rival", f"{tip}^{{tree}}")

    def interfere(_: str) -> None:
        shop.git("update-ref", "refs/heads/main", rival)

    shop.ctx.checkpoint = interfere
    with pytest.raises(CannotMerge):
        shop.merge()
    assert shop.at("main") == rival


# -- afterwards --------------------------------------------------------------------------


def test_a_merged_worker_with_more_in_it_is_kept(shop: Workshop) -> None:
    shop.commit(shop.tree, "one.txt", "1\n")
    for how in (How.SQUASH, How.MERGE):
        done = shop.merge(how)
        merging.check_nothing_else_at_stake(done)
    (shop.tree / "noise.log").write_text("noise\n")
    with pytest.raises(WorkAtStake, match=r"noise\.log"):
        merging.check_nothing_else_at_stake(done)
    (shop.tree / "noise.log").unlink()
    shop.commit(shop.tree, "two.txt", "2\n")
    with pytest.raises(WorkAtStake, match="since the merge"):
        merging.check_nothing_else_at_stake(done)
