"""Every kind of work: removed, git's garbage collected, restored, compared byte for byte."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.workshop import Workshop, write
from tmuxorch.adapters.git import packs
from tmuxorch.core.observation import Unknown
from tmuxorch.core.stake import Stake, describe
from tmuxorch.errors import CannotSave
from tmuxorch.model import State
from tmuxorch.service.care.repository_lock import mend
from tmuxorch.service.removal.work import observe_stake

Kind = Callable[[Workshop, Path], None]
KINDS: dict[str, Kind] = {}
# With fresh stat data git has to read the file, which without its filter it cannot.
STATUS_NEEDS_THE_FILTER = {"a filter that went missing"}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    shop = Workshop.make(tmp_path, monkeypatch)
    yield shop
    shop.close()


def kind(make: Kind) -> Kind:
    KINDS[make.__name__.strip("_").replace("_", " ")] = make
    return make


@kind
def staged(shop: Workshop, top: Path) -> None:
    write(top / "README", "staged\n")
    shop.sh(top, "add", "README")


@kind
def staged_and_then_edited_again(shop: Workshop, top: Path) -> None:
    staged(shop, top)
    write(top / "README", "and again\n")


@kind
def unstaged(_: Workshop, top: Path) -> None:
    write(top / "README", "changed\n")


@kind
def same_size_and_time(_: Workshop, top: Path) -> None:
    times = os.stat(top / "README")
    write(top / "README", "HELLO\n")
    os.utime(top / "README", ns=(times.st_atime_ns, times.st_mtime_ns))


@kind
def untracked(_: Workshop, top: Path) -> None:
    write(top / "deep/er/new.txt")


@kind
def untracked_though_git_is_told_to_show_none(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "status.showUntrackedFiles", "no")
    write(top / "new.txt")


@kind
def ignored(_: Workshop, top: Path) -> None:
    write(top / "secret.log", b"\0\xff secret")
    write(top / ".env", "KEY=1\n").chmod(0o600)
    write(top / "build/deep/out.bin", os.urandom(1000))


@kind
def assume_unchanged(shop: Workshop, top: Path) -> None:
    shop.sh(top, "update-index", "--assume-unchanged", "README")
    write(top / "README", "hidden edit\n")


@kind
def skip_worktree(shop: Workshop, top: Path) -> None:
    shop.sh(top, "update-index", "--skip-worktree", "README")
    write(top / "README", "hidden edit\n")


@kind
def commits_without_upstream(shop: Workshop, top: Path) -> None:
    shop.commit(top, "done.txt")


@kind
def commits_of_a_detached_head(shop: Workshop, top: Path) -> None:
    shop.sh(top, "checkout", "-q", "--detach")
    shop.commit(top, "detached.txt")


@kind
def another_branch_checked_out(shop: Workshop, top: Path) -> None:
    shop.sh(top, "checkout", "-q", "-b", "feature")
    shop.commit(top, "feature.txt")
    write(top / "README", "on a feature\n")


@kind
def a_stash(shop: Workshop, top: Path) -> None:
    write(top / "README", "stashed\n")
    shop.sh(top, "stash", "push", "-q")


def conflict(shop: Workshop, top: Path, command: str) -> None:
    shop.commit(shop.repo, "README", "theirs\n")
    shop.commit(top, "README", "ours\n")
    shop.sh(top, *command.split(), "main", ok=False)
    assert "UU README" in shop.sh(top, "status", "--porcelain")


@kind
def a_merge_under_way(shop: Workshop, top: Path) -> None:
    conflict(shop, top, "merge")


@kind
def a_rebase_under_way(shop: Workshop, top: Path) -> None:
    conflict(shop, top, "rebase")


@kind
def a_cherry_pick_under_way(shop: Workshop, top: Path) -> None:
    conflict(shop, top, "cherry-pick")


@kind
def a_revert_under_way(shop: Workshop, top: Path) -> None:
    shop.commit(top, "README", "one\n")
    shop.commit(top, "README", "two\n")
    shop.sh(top, "revert", "--no-edit", "HEAD~1", ok=False)


@kind
def a_bisect_under_way(shop: Workshop, top: Path) -> None:
    for number in range(4):
        shop.commit(top, "n", f"{number}\n")
    shop.sh(top, "bisect", "start", "HEAD", "HEAD~4")


@kind
def a_conflict_partly_solved(shop: Workshop, top: Path) -> None:
    conflict(shop, top, "merge")
    write(top / "README", "half solved <<<<<<<\n")
    write(top / "other.txt")
    shop.sh(top, "add", "other.txt")


@kind
def a_file_deleted_by_us_and_changed_by_them(shop: Workshop, top: Path) -> None:
    shop.commit(shop.repo, "README", "theirs\n")
    shop.sh(top, "rm", "-q", "README")
    shop.sh(top, "commit", "-qm", "delete")
    shop.sh(top, "merge", "main", ok=False)


def make_submodule(shop: Workshop, top: Path) -> Path:
    library = shop.directory / "library"
    library.mkdir()
    shop.sh(library, "init", "-q")
    shop.commit(library, "lib.c")
    shop.sh(top, "submodule", "--quiet", "add", str(library), "sub")
    shop.sh(top, "commit", "-qm", "add a submodule")
    return top / "sub"


@kind
def commits_only_in_a_submodule(shop: Workshop, top: Path) -> None:
    shop.commit(make_submodule(shop, top), "deep.c")


@kind
def edits_in_a_submodule(shop: Workshop, top: Path) -> None:
    sub = make_submodule(shop, top)
    write(sub / "lib.c", "edited\n")
    write(sub / "new.c")


@kind
def a_nested_repository(shop: Workshop, top: Path) -> None:
    nested = top / "vendor/tool"
    nested.mkdir(parents=True)
    shop.sh(nested, "init", "-q")
    shop.commit(nested, "tool.py")
    shop.sh(nested, "checkout", "-q", "-b", "other")
    shop.commit(nested, "more.py")
    write(nested / "unsaved.py")


@kind
def a_nested_repository_without_a_commit(shop: Workshop, top: Path) -> None:
    nested = top / "young"
    nested.mkdir()
    shop.sh(nested, "init", "-q")
    write(nested / "first.py")
    shop.sh(nested, "add", "first.py")


@kind
def a_required_filter_that_is_missing(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "filter.lfs.clean", "no-such-program clean")
    shop.sh(shop.repo, "config", "filter.lfs.smudge", "no-such-program smudge")
    shop.sh(shop.repo, "config", "filter.lfs.required", "true")
    write(top / ".gitattributes", "*.bin filter=lfs\n")
    write(top / "model.bin", b"\0\1\2" * 1000)


@kind
def a_filter_that_went_missing(shop: Workshop, top: Path) -> None:
    shop.commit(top, ".gitattributes", "*.bin filter=lfs\n")
    shop.commit(top, "model.bin", "old\n")
    a_required_filter_that_is_missing(shop, top)


@kind
def line_ends_that_a_checkout_would_make(shop: Workshop, top: Path) -> None:
    write(top / ".gitattributes", "*.bat eol=crlf\n")
    write(top / "unix.bat", b"one\ntwo\n")
    shop.sh(top, "add", "unix.bat")


@kind
def a_filter_that_changes_bytes(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "filter.rot.clean", "tr a-z b-za")
    shop.sh(shop.repo, "config", "filter.rot.smudge", "tr b-za a-z")
    write(top / ".gitattributes", "*.rot filter=rot\n")
    write(top / "text.rot", "abcxyz\n")


@kind
def a_filter_that_loses_bytes(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "filter.strip.clean", "sed s/secret//")
    write(top / ".gitattributes", "*.nb filter=strip\n")
    write(top / "a.nb", "my secret output\n")


@kind
def an_ident(_: Workshop, top: Path) -> None:
    write(top / ".gitattributes", "*.c ident\n")
    write(top / "v.c", "/* $Id$ and $Id: old$ */\n")


@kind
def crlf_that_git_would_change(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "core.autocrlf", "input")
    write(top / "dos.txt", b"one\r\ntwo\r\n")
    write(top / "mixed.txt", b"one\r\ntwo\n")


@kind
def autocrlf_true(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "core.autocrlf", "true")
    for name in ("README", "run.sh", "src/app.py", ".gitignore"):
        (top / name).unlink()
    shop.sh(top, "checkout", "-q", ".")
    write(top / "unix.txt", b"one\ntwo\n")
    write(top / "dos.txt", b"one\r\ntwo\r\n")


@kind
def another_encoding_in_the_worktree(_: Workshop, top: Path) -> None:
    write(top / ".gitattributes", "*.ps1 working-tree-encoding=UTF-16LE eol=crlf\n")
    write(top / "a.ps1", "größe\r\n".encode("utf-16le"))


@kind
def an_unborn_head(shop: Workshop, top: Path) -> None:
    shop.sh(top, "checkout", "-q", "--orphan", "fresh")
    write(top / "README", "from scratch\n")


@kind
def a_sparse_checkout(shop: Workshop, top: Path) -> None:
    shop.sh(top, "sparse-checkout", "set", "--no-cone", "/src/", "/link")
    assert not (top / "README").exists()
    write(top / "src/app.py", "changed\n")
    write(top / "src/new.py")


@kind
def a_stale_index_lock(shop: Workshop, top: Path) -> None:
    staged(shop, top)
    own = shop.sh(top, "rev-parse", "--absolute-git-dir").strip()
    write(Path(own) / "index.lock", "")


@kind
def symlinks(_: Workshop, top: Path) -> None:
    (top / "to-file").symlink_to("README")
    (top / "broken").symlink_to("nowhere")
    (top / "absolute").symlink_to("/etc/hostname")
    (top / "to-dir").symlink_to("src")


@kind
def modes(_: Workshop, top: Path) -> None:
    (top / "README").chmod(0o755)
    (top / "run.sh").chmod(0o644)
    write(top / "private.key").chmod(0o600)
    write(top / "read-only").chmod(0o444)


@kind
def empty_directories(_: Workshop, top: Path) -> None:
    (top / "empty/in/empty").mkdir(parents=True)
    (top / "src/void").mkdir()
    write(top / "objects/new.txt")


@kind
def odd_names(_: Workshop, top: Path) -> None:
    for name in (b"new\nline", b"tab\there", b"\xff\xfe", b'quo"te', b"-dash", b" space ", b"\\"):
        Path(os.fsdecode(os.path.join(os.fsencode(top), name))).write_bytes(name)
        Path(os.fsdecode(os.path.join(os.fsencode(top), name + b".log"))).write_bytes(name)


@kind
def a_big_file(_: Workshop, top: Path) -> None:
    block = os.urandom(1 << 16)
    with open(top / "big.bin", "wb") as file:
        file.writelines([block] * 800)


@kind
def intent_to_add(shop: Workshop, top: Path) -> None:
    write(top / "soon.txt")
    shop.sh(top, "add", "-N", "soon.txt")


@kind
def renamed(shop: Workshop, top: Path) -> None:
    shop.sh(top, "mv", "README", "LIESMICH")


@kind
def deleted(shop: Workshop, top: Path) -> None:
    shop.sh(top, "rm", "-q", "README")
    (top / "run.sh").unlink()


@kind
def a_file_that_became_a_link(_: Workshop, top: Path) -> None:
    (top / "README").unlink()
    (top / "README").symlink_to("run.sh")


@kind
def a_link_that_became_a_file(_: Workshop, top: Path) -> None:
    (top / "link").unlink()
    write(top / "link", "a file now\n")


@kind
def a_file_that_became_a_directory(_: Workshop, top: Path) -> None:
    (top / "README").unlink()
    write(top / "README/chapter", "one\n")


@kind
def a_directory_that_became_a_file(_: Workshop, top: Path) -> None:
    shutil.rmtree(top / "src")
    write(top / "src", "flat\n")


@kind
def names_like_gits_own(_: Workshop, top: Path) -> None:
    write(top / "sub/.gitkeep", "")
    write(top / "sub/.git-old/config", "[core]\n")
    write(top / ".gitmodules.bak")


@kind
def tracked_though_ignored(shop: Workshop, top: Path) -> None:
    write(top / "kept.log", "one\n")
    shop.sh(top, "add", "-f", "kept.log")
    write(top / "kept.log", "two\n")


@kind
def an_exclude_of_ones_own(shop: Workshop, top: Path) -> None:
    write(shop.repo / ".git/info/exclude", "notes\n")
    write(top / "notes", "mine\n")


@kind
def removed_from_the_index_only(shop: Workshop, top: Path) -> None:
    shop.sh(top, "rm", "-q", "--cached", "README")


@kind
def a_split_index(shop: Workshop, top: Path) -> None:
    shop.sh(top, "update-index", "--split-index")
    staged(shop, top)


@kind
def a_commit_that_was_amended_away(shop: Workshop, top: Path) -> None:
    shop.commit(top, "first-try.txt")
    shop.sh(top, "commit", "-q", "--amend", "-m", "second try")


@kind
def a_filter_that_cleans_the_edit_away(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "filter.strip.clean", "sed s/secret//")
    shop.commit(top, ".gitattributes", "*.nb filter=strip\n")
    shop.commit(top, "a.nb", "my output\n")
    write(top / "a.nb", "my secretoutput\n")
    shop.sh(top, "status")


@kind
def an_edit_of_line_ends_alone(shop: Workshop, top: Path) -> None:
    shop.commit(top, ".gitattributes", "* text=auto\n")
    shop.commit(top, "lines.txt", "one\ntwo\n")
    write(top / "lines.txt", b"one\r\ntwo\r\n")
    shop.sh(top, "add", "lines.txt")
    shop.sh(top, "status")


@kind
def an_ident_that_was_edited(shop: Workshop, top: Path) -> None:
    shop.commit(top, ".gitattributes", "*.c ident\n")
    shop.commit(top, "v.c", "/* $Id$ */\n")
    write(top / "v.c", "/* $Id: by hand $ */\n")
    shop.sh(top, "status")


@kind
def files_in_a_submodule_that_is_not_initialised(shop: Workshop, top: Path) -> None:
    make_submodule(shop, top)
    shop.sh(top, "submodule", "--quiet", "deinit", "-f", "sub")
    write(top / "sub/notes.txt", "mine\n")
    write(top / "sub/deep/er.txt")


@kind
def files_below_a_git_that_is_no_repository(_: Workshop, top: Path) -> None:
    write(top / "fixtures/one/.git/config", "[core]\n")
    write(top / "fixtures/one/data.txt")
    write(top / "fixtures/two/.git", "gitdir: /nowhere\n")
    write(top / "fixtures/two/data.txt")
    write(top / "fixtures/three/.git", "no gitfile at all\n")


@kind
def a_new_file_of_another_case(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "core.ignoreCase", "true")
    write(top / "readme", "not README\n")


@kind
def modes_that_git_does_not_keep(_: Workshop, top: Path) -> None:
    (top / "README").chmod(0o600)
    (top / "run.sh").chmod(0o700)
    (top / "src").chmod(0o700)


@kind
def modes_that_git_is_told_to_overlook(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "core.fileMode", "false")
    (top / "README").chmod(0o755)


@kind
def links_that_git_is_told_to_overlook(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "core.symlinks", "false")
    (top / "link").unlink()
    write(top / "link", "README")
    (top / "README").unlink()
    (top / "README").symlink_to("hello\n")


@kind
def a_fifo(_: Workshop, top: Path) -> None:
    os.mkfifo(top / "pipe")
    write(top / "new.txt")


@kind
def directories_without_end(_: Workshop, top: Path) -> None:
    deep = os.path.join(top, *("d" * 1500))
    os.makedirs(os.path.join(top, *("d" * 700)))
    os.makedirs(deep)
    write(Path(deep, "bottom.txt"), "found\n")
    write(top / "d/d/.hidden", "1\n")


@kind
def a_directory_that_nobody_may_read(_: Workshop, top: Path) -> None:
    write(top / "sealed/inner/key").chmod(0)
    (top / "sealed/inner").chmod(0)
    (top / "sealed").chmod(0o300)


@kind
def a_shallow_clone_inside(shop: Workshop, top: Path) -> None:
    for number in range(3):
        shop.commit(shop.repo, "n", f"{number}\n")
    shop.sh(top, "clone", "-q", "--depth=1", f"file://{shop.repo}", "tool")
    shop.commit(top / "tool", "mine.txt")
    assert (top / "tool/.git/shallow").exists()


@kind
def a_shallow_submodule(shop: Workshop, top: Path) -> None:
    library = shop.directory / "library"
    library.mkdir()
    shop.sh(library, "init", "-q")
    for number in range(3):
        shop.commit(library, "lib.c", f"{number}\n")
    shop.sh(top, "submodule", "--quiet", "add", "--depth=1", f"file://{library}", "sub")
    shop.sh(top, "commit", "-qm", "add a submodule")
    shop.commit(top / "sub", "deep.c")


@kind
def all_that_a_nested_repository_can_hold(shop: Workshop, top: Path) -> None:
    nested = top / "vendor/tool"
    nested.mkdir(parents=True)
    shop.sh(nested, "init", "-q")
    shop.commit(nested, "tool.py")
    write(nested / "tool.py", "stashed\n")
    shop.sh(nested, "stash", "push", "-q")
    shop.commit(nested, "lost.py")
    shop.sh(nested, "reset", "-q", "--hard", "HEAD~1")
    write(nested / ".git/hooks/pre-commit", "#!/bin/sh\n").chmod(0o755)
    write(nested / ".git/info/exclude", "*.tmp\n")
    shop.sh(nested, "config", "alias.x", "status")
    shop.sh(nested, "worktree", "add", "-q", "../linked")
    write(nested / "junk.tmp")


@kind
def line_ends_that_a_checkout_would_not_make(shop: Workshop, top: Path) -> None:
    shop.sh(shop.repo, "config", "core.autocrlf", "true")
    shop.commit(top, "unix.txt", "one\ntwo\n")
    shop.sh(top, "status")


@kind
def a_hidden_file_that_was_deleted(shop: Workshop, top: Path) -> None:
    shop.sh(top, "update-index", "--skip-worktree", "README")
    (top / "README").unlink()


@kind
def attributes_in_a_nested_repository(shop: Workshop, top: Path) -> None:
    nested = top / "vendor"
    nested.mkdir()
    shop.sh(nested, "init", "-q")
    shop.commit(nested, ".gitattributes", "*.bat eol=crlf\n*.nb filter=strip\n")
    shop.commit(nested, "run.bat", "one\r\n")
    write(nested / "run.bat", "two\n")


@kind
def a_commit_that_only_the_log_knows(shop: Workshop, top: Path) -> None:
    shop.commit(top, "dropped.txt")
    shop.sh(top, "reset", "-q", "--hard", "HEAD~1")


@pytest.mark.parametrize("name", KINDS)
def test_it_comes_back_as_it_was(shop: Workshop, name: str) -> None:
    agent = shop.worker()
    top = Path(agent.task.worktree)
    KINDS[name](shop, top)
    reflog = set(shop.sh(top, "log", "-g", "--format=%H", "HEAD", "--", ok=False).split())
    before, mine = shop.look(top), shop.sh(shop.repo, "status", "--porcelain=v2", "--branch")
    stake = observe_stake(agent)
    assert isinstance(stake, Stake)
    assert describe(stake)

    entry = shop.remove(agent)
    assert not top.exists()
    assert shop.sh(shop.repo, "status", "--porcelain=v2", "--branch") == mine
    shop.collect_garbage()
    again = shop.restore(entry)

    assert again.state is State.EXITED
    assert (again.task.name, again.task.branch, again.task.worktree) == (
        agent.task.name,
        agent.task.branch,
        str(top),
    )
    after = shop.look(top)
    assert after.files == before.files
    if name not in STATUS_NEEDS_THE_FILTER:
        assert after.status == before.status
    assert after.index == before.index
    assert after.head == before.head
    assert after.state == before.state
    for commit in reflog:
        shop.sh(shop.repo, "cat-file", "-e", commit)


def test_there_are_forty_kinds_and_more() -> None:
    assert len(KINDS) >= 40


def test_a_log_alone_keeps_a_worker_from_being_called_clean(shop: Workshop) -> None:
    agent = shop.worker()
    a_commit_that_only_the_log_knows(shop, Path(agent.task.worktree))
    stake = observe_stake(agent)
    assert isinstance(stake, Stake)
    assert [commit.title for commit in stake.dropped] == ["write dropped.txt"]


def test_what_was_restored_is_as_much_at_stake_as_it_was(shop: Workshop) -> None:
    agent = shop.worker()
    write(Path(agent.task.worktree) / "README", "")
    again = shop.restore(shop.remove(agent))
    stake = observe_stake(again)
    assert isinstance(stake, Stake)
    assert stake.unstaged == ("README",)
    last = shop.restore(shop.remove(again))
    assert (Path(last.task.worktree) / "README").read_bytes() == b""


def test_a_link_is_no_change_where_git_makes_line_ends(shop: Workshop) -> None:
    shop.sh(shop.repo, "config", "core.autocrlf", "true")
    stake = observe_stake(shop.worker())
    assert isinstance(stake, Stake)
    assert stake.empty, describe(stake)


def test_a_branch_that_was_deleted_under_its_worker_is_made_at_its_base(shop: Workshop) -> None:
    agent = shop.worker()
    top = Path(agent.task.worktree)
    shop.commit(top, "done.txt")
    shop.sh(shop.repo, "update-ref", "-d", f"refs/heads/{agent.task.branch}")
    files = shop.look(top).files
    again = shop.restore(shop.remove(agent))
    assert shop.look(Path(again.task.worktree)).files == files
    assert shop.sh(top, "rev-parse", "HEAD").strip() == agent.task.base_commit


def test_commits_are_kept_though_neither_head_nor_branch_has_them(shop: Workshop) -> None:
    agent = shop.worker()
    top = Path(agent.task.worktree)
    commit = shop.commit(top, "precious.txt")
    shop.sh(top, "checkout", "-q", "--orphan", "fresh")
    shop.sh(shop.repo, "branch", "-qD", agent.task.branch)
    stake = observe_stake(agent)
    assert isinstance(stake, Stake)
    assert [kept.oid for kept in stake.dropped] == [commit]
    entry = shop.remove(agent)
    shop.collect_garbage()
    shop.sh(shop.repo, "cat-file", "-e", f"{commit}^{{tree}}")
    assert (Path(shop.restore(entry).task.worktree) / "precious.txt").exists()


def test_a_staged_file_may_begin_as_the_lines_of_git_do(shop: Workshop) -> None:
    agent = shop.worker()
    top = Path(agent.task.worktree)
    write(top / ":x", "in the index\n")
    shop.sh(top, "add", "--", "./:x")
    write(top / ":x", "in the directory\n")
    before = shop.look(top)
    again = shop.restore(shop.remove(agent))
    assert shop.look(Path(again.task.worktree)) == before


def test_a_bug_in_saving_quarantines_and_the_next_removal_begins_anew(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = shop.worker()
    write(Path(agent.task.worktree) / "new.txt", "work\n")
    with monkeypatch.context() as broken:
        broken.setattr(packs, "write_staged", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            shop.remove(agent)
    (kept,) = shop.ctx.store.agents()
    assert kept.state is State.QUARANTINED
    assert (Path(agent.task.worktree) / "new.txt").read_text() == "work\n"
    again = shop.restore(shop.remove(kept))
    assert (Path(again.task.worktree) / "new.txt").read_text() == "work\n"


@pytest.mark.parametrize("recorded", [True, False])
def test_a_worktree_that_git_moved_is_not_removed_as_if_it_were_empty(
    shop: Workshop, recorded: bool
) -> None:
    agent = shop.worker()
    top, there = Path(agent.task.worktree), shop.directory / "moved"
    write(top / "new.txt", "work\n")
    if recorded:
        mend(shop.ctx, agent.task.repo)
    shop.sh(shop.repo, "worktree", "move", "-f", "-f", str(top), str(there))
    [agent] = shop.ctx.store.agents()
    assert (agent.admin is not None) is recorded
    stake = observe_stake(agent)
    assert isinstance(stake, Unknown)
    assert str(there) in stake.why
    with pytest.raises(CannotSave, match="moved to"):
        shop.remove(agent)
    [kept] = shop.ctx.store.agents()
    assert kept.state is State.QUARANTINED
    shop.sh(shop.repo, "worktree", "move", "-f", "-f", str(there), str(top))
    again = shop.restore(shop.remove(kept))
    assert (Path(again.task.worktree) / "new.txt").read_text() == "work\n"
