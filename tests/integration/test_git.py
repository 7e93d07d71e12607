"""git through our adapters, against a real git in a private home."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from git import Repo as Oracle

from tmuxorch.adapters.git.branches import (
    Base,
    branch_commit,
    check_branch_name,
    commits_only_on,
    delete_branch,
    holding_nothing,
    holds_nothing,
    resolve_base,
)
from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.changes import WorkStats, diff, work_stats
from tmuxorch.adapters.git.copies import copy_into_worktree
from tmuxorch.adapters.git.location import Repo, find_repo
from tmuxorch.adapters.git.worktrees import add_worktree, discard_worktree, list_worktrees
from tmuxorch.adapters.system.locks import flock
from tmuxorch.adapters.system.run import Timeout, run
from tmuxorch.errors import BadName, GitFailed, NoRepository, SetupFailed

REASON = "tmuxorch:store:abc123"
ODD_NAMES = ["with space", "größe-名", "new\nline", "quo'te\"", "-dash"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's own git is read or written."""
    config = tmp_path / "gitconfig"
    config.write_text(
        "[user]\nname = Test\nemail = test@example.com\n[init]\ndefaultBranch = main\n"
        '[protocol "file"]\nallow = always\n'
    )
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def sh(directory: Path | str, *arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "GIT_DIR"}
    argv = ["git", "-C", str(directory), *arguments]
    done = subprocess.run(argv, env=env, check=True, capture_output=True)
    return os.fsdecode(done.stdout).strip()


def make_repo(path: Path) -> Repo:
    path.mkdir(parents=True)
    sh(path, "init", "-q")
    commit(path, "a.txt", "one\n")
    return find_repo(str(path))


def commit(directory: Path | str, name: str, text: str) -> str:
    Path(directory, name).parent.mkdir(parents=True, exist_ok=True)
    Path(directory, name).write_text(text)
    sh(directory, "add", "--", name)
    sh(directory, "commit", "-qm", f"write {name}")
    return sh(directory, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "repo")


def add(
    repo: Repo, path: Path, *, branch: str = "agent/x", new: bool = True, reason: str = REASON
) -> None:
    with flock(f"{repo.common_dir}/test-lock", timeout_s=60):
        add_worktree(
            repo,
            str(path),
            branch=branch,
            new_branch=new,
            commit=sh(repo.root, "rev-parse", "HEAD"),
            reason=reason,
            marker={"TMUXORCH_AGENT_ID": "abc123"},
        )


def remove(repo: Repo, path: Path, *, reason: str = REASON) -> None:
    trash = path.parent / ".trash" / path.name
    with flock(f"{repo.common_dir}/test-lock", timeout_s=60):
        discard_worktree(repo, str(path), reason=reason, trash=str(trash))
    assert not trash.exists()


class TestRun:
    def test_it_returns_status_and_both_outputs(self) -> None:
        done = run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=5)
        assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")

    def test_more_than_a_pipe_holds_goes_in_and_out(self) -> None:
        data = os.urandom(3_000_000)
        assert run(["cat"], timeout_s=20, stdin=data).stdout == data

    def test_a_program_that_reads_nothing_is_no_failure(self) -> None:
        assert run(["true"], timeout_s=5, stdin=b"x" * 1_000_000).returncode == 0

    def test_a_timeout_ends_the_children_too(self, tmp_path: Path) -> None:
        pids = tmp_path / "pids"
        with pytest.raises(Timeout):
            run(["sh", "-c", f"sleep 60 & echo $! > {pids}; wait"], timeout_s=0.3)
        wait_until_dead(int(pids.read_text()))

    def test_a_child_that_ignores_term_is_killed(self, tmp_path: Path) -> None:
        pids = tmp_path / "pids"
        script = f"trap '' TERM; echo $$ > {pids}; while :; do sleep 0.05; done"
        with pytest.raises(Timeout):
            run(["sh", "-c", script], timeout_s=0.3)
        wait_until_dead(int(pids.read_text()))

    def test_a_background_child_that_holds_the_output_is_not_waited_for(self) -> None:
        started = time.monotonic()
        assert run(["sh", "-c", "echo hi; sleep 5 &"], timeout_s=20).stdout == b"hi\n"
        assert time.monotonic() - started < 3

    def test_a_program_that_closes_its_output_is_still_waited_for(self) -> None:
        assert run(["sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 4"], timeout_s=5).returncode == 4

    def test_output_streams_merged_while_the_program_runs(self) -> None:
        seen: list[tuple[float, bytes]] = []
        run(
            ["sh", "-c", "echo a; echo b >&2; sleep 0.4; echo c"],
            timeout_s=5,
            on_output=lambda chunk: seen.append((time.monotonic(), chunk)),
        )
        assert b"".join(chunk for _, chunk in seen) == b"a\nb\nc\n"
        assert seen[-1][0] - seen[0][0] > 0.3

    def test_an_interrupt_ends_the_children(self, tmp_path: Path) -> None:
        pids = tmp_path / "pids"

        def interrupt(_: bytes) -> None:
            raise KeyboardInterrupt

        script = f"sleep 60 & echo $! > {pids}; echo up; wait"
        with pytest.raises(KeyboardInterrupt):
            run(["sh", "-c", script], timeout_s=20, on_output=interrupt)
        wait_until_dead(int(pids.read_text()))

    def test_a_missing_program_is_a_file_not_found(self) -> None:
        with pytest.raises(FileNotFoundError):
            run(["no-such-program-anywhere"], timeout_s=5)


def wait_until_dead(pid: int) -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"{pid} is alive")


class TestFlock:
    def test_one_holder_at_a_time_between_processes(self, tmp_path: Path) -> None:
        lock, log = tmp_path / "lock", tmp_path / "log"
        script = (
            "import sys, time\n"
            "from tmuxorch.adapters.system.locks import flock\n"
            "with flock(sys.argv[1], timeout_s=30):\n"
            "    open(sys.argv[2], 'a').write('in ')\n"
            "    time.sleep(0.05)\n"
            "    open(sys.argv[2], 'a').write('out ')\n"
        )
        children = [
            subprocess.Popen([sys.executable, "-c", script, str(lock), str(log)]) for _ in range(5)
        ]
        assert [child.wait() for child in children] == [0] * 5
        assert log.read_text() == "in out " * 5
        assert lock.exists()

    def test_waiting_ends_at_the_timeout(self, tmp_path: Path) -> None:
        lock = str(tmp_path / "lock")
        with flock(lock, timeout_s=1), pytest.raises(Timeout), flock(lock, timeout_s=0.1):
            pass

    def test_an_exception_inside_releases_it(self, tmp_path: Path) -> None:
        lock = str(tmp_path / "lock")
        with pytest.raises(ZeroDivisionError), flock(lock, timeout_s=1):
            raise ZeroDivisionError
        with flock(lock, timeout_s=0.1):
            pass

    def test_one_that_its_holder_unlinked_is_held_anew(self, tmp_path: Path) -> None:
        path = str(tmp_path / "lock")
        held: list[bool] = []

        def wait() -> None:
            with flock(path, timeout_s=10):
                held.append(os.path.exists(path))

        with flock(path, timeout_s=1):
            waiter = threading.Thread(target=wait)
            waiter.start()
            os.unlink(path)
        waiter.join()
        assert held == [True]


class TestFindRepo:
    @pytest.mark.parametrize("name", ["plain", *ODD_NAMES])
    def test_it_is_the_main_worktree_from_anywhere_inside(self, tmp_path: Path, name: str) -> None:
        made = make_repo(tmp_path / name)
        linked, deep = tmp_path / f"{name} linked", tmp_path / name / "x" / "y"
        deep.mkdir(parents=True)
        sh(made.root, "worktree", "add", "-q", "-b", "linked", str(linked))
        (linked / "z").mkdir()
        expected = Repo(str(tmp_path / name), str(tmp_path / name / ".git"), bare=False)
        for place in [tmp_path / name, deep, linked, linked / "z", tmp_path / name / ".git"]:
            assert find_repo(str(place)) == expected
        assert Oracle(deep, search_parent_directories=True).working_dir == expected.root

    def test_a_nested_worktree_belongs_to_its_repository(self, repo: Repo) -> None:
        sh(repo.root, "worktree", "add", "-q", "inner")
        assert find_repo(f"{repo.root}/inner") == repo

    def test_a_link_to_the_repository_is_the_repository(self, repo: Repo, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(repo.root)
        assert find_repo(str(tmp_path / "link")) == repo

    def test_a_bare_repository_is_its_own_root(self, repo: Repo, tmp_path: Path) -> None:
        bare = tmp_path / "bare.git"
        sh(tmp_path, "clone", "-q", "--bare", repo.root, str(bare))
        expected = Repo(str(bare), str(bare), bare=True)
        assert find_repo(str(bare)) == expected
        sh(bare, "worktree", "add", "-q", str(tmp_path / "wt"))
        assert find_repo(str(tmp_path / "wt")) == expected

    def test_a_gitfile_to_a_bare_repository_beside_it(self, repo: Repo, tmp_path: Path) -> None:
        project = tmp_path / "project"
        project.mkdir()
        sh(tmp_path, "clone", "-q", "--bare", repo.root, str(project / ".bare"))
        (project / ".git").write_text("gitdir: ./.bare\n")
        bare = str(project / ".bare")
        assert find_repo(str(project)) == Repo(bare, bare, bare=True)

    def test_a_submodule_is_a_repository_of_its_own(self, repo: Repo, tmp_path: Path) -> None:
        outer = make_repo(tmp_path / "outer")
        sh(outer.root, "submodule", "add", "-q", repo.root, "sub")
        found = find_repo(f"{outer.root}/sub")
        assert found == Repo(f"{outer.root}/sub", f"{outer.root}/.git/modules/sub", bare=False)
        sh(found.root, "worktree", "add", "-q", str(tmp_path / "subwt"))
        assert find_repo(str(tmp_path / "subwt")) == found

    def test_a_separate_git_dir(self, tmp_path: Path) -> None:
        sh(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "store"), "work")
        expected = Repo(str(tmp_path / "work"), str(tmp_path / "store"), bare=False)
        assert find_repo(str(tmp_path / "work")) == expected

    def test_a_repository_before_its_first_commit(self, tmp_path: Path) -> None:
        sh(tmp_path, "init", "-q", "fresh")
        assert find_repo(str(tmp_path / "fresh")).root == str(tmp_path / "fresh")

    def test_the_usual_layout_is_found_without_running_git(
        self, repo: Repo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        assert find_repo(repo.root) == repo

    @pytest.mark.parametrize("place", ["", "missing", "file"])
    def test_no_repository_is_said_with_the_path(self, tmp_path: Path, place: str) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(NoRepository, match=str(tmp_path)):
            find_repo(str(tmp_path / place))

    @pytest.mark.parametrize("words", ["gitdir: /nonexistent\n", "rubbish", ""])
    def test_a_broken_gitfile_is_named(self, tmp_path: Path, words: str) -> None:
        (tmp_path / ".git").write_text(words)
        with pytest.raises(NoRepository, match="broken"):
            find_repo(str(tmp_path))

    def test_a_broken_git_directory_is_named(self, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        with pytest.raises(NoRepository, match="broken"):
            find_repo(str(tmp_path))


class TestResolveBase:
    def test_none_is_the_branch_where_the_user_is(self, repo: Repo, tmp_path: Path) -> None:
        sh(repo.root, "worktree", "add", "-q", "-b", "other", str(tmp_path / "wt"))
        tip = commit(tmp_path / "wt", "b", "b")
        assert resolve_base(repo, None, cwd=str(tmp_path / "wt")) == Base("other", tip)
        assert resolve_base(repo, None, cwd=repo.root).name == "main"
        assert resolve_base(repo, "HEAD", cwd=str(tmp_path / "wt")) == Base("other", tip)

    def test_a_detached_head_is_called_head(self, repo: Repo) -> None:
        sh(repo.root, "checkout", "-q", "--detach")
        tip = sh(repo.root, "rev-parse", "HEAD")
        assert resolve_base(repo, None, cwd=repo.root) == Base("HEAD", tip)

    def test_branch_tag_and_commit(self, repo: Repo) -> None:
        first = sh(repo.root, "rev-parse", "HEAD")
        sh(repo.root, "tag", "light")
        sh(repo.root, "tag", "-a", "-m", "note", "heavy")
        sh(repo.root, "tag", "-a", "-m", "note", "heavier", "heavy")
        sh(repo.root, "branch", "feature/ü")
        commit(repo.root, "b", "b")
        for base in ["light", "heavy", "heavier", "feature/ü", first, first[:8], "main~1"]:
            assert resolve_base(repo, base, cwd=repo.root) == Base(base, first)

    def test_a_branch_wins_over_a_tag_of_its_name(self, repo: Repo) -> None:
        sh(repo.root, "tag", "same")
        tip = commit(repo.root, "b", "b")
        sh(repo.root, "branch", "same")
        assert resolve_base(repo, "same", cwd=repo.root).commit == tip

    def test_remote_branches_with_and_without_the_remote(self, repo: Repo, tmp_path: Path) -> None:
        sh(repo.root, "branch", "topic/x")
        tip = sh(repo.root, "rev-parse", "HEAD")
        sh(tmp_path, "clone", "-q", repo.root, "clone")
        clone = find_repo(str(tmp_path / "clone"))
        expected = Base("origin/topic/x", tip)
        assert resolve_base(clone, "origin/topic/x", cwd=clone.root) == expected
        assert resolve_base(clone, "topic/x", cwd=clone.root) == expected
        sh(clone.root, "remote", "add", "-f", "fork", repo.root)
        with pytest.raises(GitFailed, match="fork/topic/x or origin/topic/x"):
            resolve_base(clone, "topic/x", cwd=clone.root)

    @pytest.mark.parametrize(
        ("base", "words"),
        [
            ("nope", "no branch, tag or commit nope"),
            ("--exec=id", "cannot be a base"),
            ("-", "cannot be a base"),
            ("a\nb", "cannot be a base"),
            ("", "no branch, tag or commit"),
            ("main..main", "no branch"),
            ("^main", "cannot be a base"),
            ("main:", "not a commit"),
            ("main:a.txt", "not a commit"),
            ("*", "no branch"),
            ("mai", "no branch"),
        ],
    )
    def test_what_is_no_commit_is_refused(self, repo: Repo, base: str, words: str) -> None:
        with pytest.raises(GitFailed, match=words):
            resolve_base(repo, base, cwd=repo.root)

    def test_before_the_first_commit_there_is_no_base(self, tmp_path: Path) -> None:
        sh(tmp_path, "init", "-q", "fresh")
        fresh = find_repo(str(tmp_path / "fresh"))
        with pytest.raises(GitFailed, match="no commit yet; make one first"):
            resolve_base(fresh, None, cwd=fresh.root)

    def test_a_hostile_environment_does_not_redirect_git(
        self, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = make_repo(tmp_path / "other")
        commit(other.root, "x", "x")
        expected = resolve_base(repo, "main", cwd=repo.root)
        monkeypatch.setenv("GIT_DIR", f"{other.root}/.git")
        monkeypatch.setenv("GIT_WORK_TREE", other.root)
        monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent/index")
        monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/nonexistent")
        monkeypatch.setenv("GIT_NAMESPACE", "elsewhere")
        monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.worktree'='/nonexistent'")
        assert resolve_base(repo, "main", cwd=repo.root) == expected
        assert [w.path for w in list_worktrees(repo)] == [repo.root]


class TestBranches:
    def test_names_are_judged_as_git_judges_them(self) -> None:
        atoms = ["a", "/", ".", "-", "@", "{", "~", "^", ":", "?", "*", "[", "\\", " ", "\x01"]
        atoms += ["\x7f", "é", ".lock", "..", "HEAD", "$(id)", "\n", "lock"]
        names = {x + y + z for x in ["", *atoms] for y in atoms for z in ["", *atoms]}
        refused = {name for name in names if not _is_taken(name)}
        # Asked as a ref, because `--branch` expands some; the last three are its own.
        for name in sorted(names)[::7]:
            done = subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False)
            by_git = done.returncode == 0 and name not in {"@", "HEAD"} and name[0] != "-"
            assert (name not in refused) == by_git, name

    @pytest.mark.parametrize("name", ["", "@{-1}", "-", "@", "HEAD", "--exec=id", "a..b", "x.lock"])
    def test_names_git_would_expand_or_refuse_are_refused(self, name: str) -> None:
        with pytest.raises(BadName):
            check_branch_name(name)

    def test_a_missing_branch_and_a_broken_repository_are_different(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        assert branch_commit(repo, "main") == sh(repo.root, "rev-parse", "main")
        assert branch_commit(repo, "nope") is None
        with pytest.raises(GitFailed):
            branch_commit(Repo(str(tmp_path), str(tmp_path), bare=False), "main")

    def test_a_branch_is_deleted_only_from_where_it_was_seen(self, repo: Repo) -> None:
        sh(repo.root, "branch", "b")
        sh(repo.root, "config", "branch.b.remote", "origin")
        old = sh(repo.root, "rev-parse", "b")
        new = commit(repo.root, "x", "x")
        sh(repo.root, "update-ref", "refs/heads/b", new)
        with pytest.raises(GitFailed, match="kept"):
            delete_branch(repo, "b", expected=old)
        assert branch_commit(repo, "b") == new
        delete_branch(repo, "b", expected=new)
        assert branch_commit(repo, "b") is None
        assert 'branch "b"' not in Path(repo.common_dir, "config").read_text()
        delete_branch(repo, "b", expected=new)

    def test_a_branch_that_is_checked_out_is_never_deleted(self, repo: Repo) -> None:
        tip = sh(repo.root, "rev-parse", "main")
        with pytest.raises(GitFailed, match="checked out"):
            delete_branch(repo, "main", expected=tip)
        assert branch_commit(repo, "main") == tip

    def test_a_branch_holds_nothing_while_another_ref_has_its_commits(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        wt = tmp_path / "wt"
        add(repo, wt)
        assert holds_nothing(repo, "agent/x")
        tip = commit(wt, "own", "own")
        assert not holds_nothing(repo, "agent/x")
        assert [(c.oid, c.title) for c in commits_only_on(repo, [tip], besides="agent/x")] == [
            (tip, "write own")
        ]
        sh(repo.root, "update-ref", "refs/tmuxorch/salvage/x/root", tip)
        (wt / "a.txt").write_text("stashed")
        sh(wt, "stash")
        assert not holds_nothing(repo, "agent/x")
        sh(repo.root, "tag", "kept", tip)
        assert holds_nothing(repo, "agent/x")

    def test_many_branches_are_judged_as_each_by_itself(self, repo: Repo, tmp_path: Path) -> None:
        wt = tmp_path / "wt"
        add(repo, wt, branch="one")
        tips = {"merged": sh(repo.root, "rev-parse", "main"), "one": commit(wt, "1", "1")}
        tips["same"] = tips["one"]
        tips["above"] = commit(wt, "2", "2")
        for name, start in (("alone", "main"), ("tagged", "main"), ("saved", "main")):
            sh(wt, "checkout", "-q", "--detach", start)
            tips[name] = commit(wt, name, name)
        for name, tip in tips.items():
            sh(repo.root, "update-ref", f"refs/heads/{name}", tip)
        sh(repo.root, "tag", "-a", "-m", "t", "v1", tips["tagged"])
        sh(repo.root, "update-ref", "refs/tmuxorch/salvage/x/root", tips["saved"])
        spent = {name for name in tips if holds_nothing(repo, name)}
        assert holding_nothing(repo, tips) == spent == {"merged", "one", "same", "tagged"}
        assert holding_nothing(repo, {"gone": tips["one"], "one": tips["above"]}) == set()


def _is_taken(name: str) -> bool:
    try:
        check_branch_name(name)
    except BadName:
        return False
    return True


class TestAddWorktree:
    @pytest.mark.parametrize("name", ["wt", *ODD_NAMES])
    def test_it_is_locked_with_our_reason_on_a_new_branch(
        self, repo: Repo, tmp_path: Path, name: str
    ) -> None:
        add(repo, tmp_path / name)
        made = list_worktrees(repo)[1]
        assert (made.path, made.branch, made.locked_reason, made.prunable, made.bare) == (
            str(tmp_path / name),
            "agent/x",
            REASON,
            False,
            False,
        )
        assert made.head == sh(repo.root, "rev-parse", "HEAD")
        assert (tmp_path / name / "a.txt").read_text() == "one\n"
        assert Oracle(tmp_path / name).active_branch.name == "agent/x"

    def test_again_with_the_same_reason_changes_nothing(self, repo: Repo, tmp_path: Path) -> None:
        add(repo, tmp_path / "wt")
        (tmp_path / "wt" / "work").write_text("mine")
        add(repo, tmp_path / "wt")
        assert (tmp_path / "wt" / "work").read_text() == "mine"

    def test_an_existing_branch_is_checked_out(self, repo: Repo, tmp_path: Path) -> None:
        sh(repo.root, "branch", "old")
        add(repo, tmp_path / "wt", branch="old", new=False)
        assert list_worktrees(repo)[1].branch == "old"

    def test_a_branch_checked_out_elsewhere_is_refused(self, repo: Repo, tmp_path: Path) -> None:
        with pytest.raises(GitFailed, match=r"already (checked out|used by worktree)"):
            add(repo, tmp_path / "wt", branch="main", new=False)
        assert not (tmp_path / "wt").exists()

    def test_an_existing_branch_is_never_taken_for_a_new_one(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        sh(repo.root, "branch", "agent/x")
        with pytest.raises(GitFailed, match="already exists"):
            add(repo, tmp_path / "wt")

    def test_a_path_in_use_is_refused_and_left_alone(self, repo: Repo, tmp_path: Path) -> None:
        (tmp_path / "wt").mkdir()
        (tmp_path / "wt" / "precious").write_text("x")
        with pytest.raises(GitFailed, match="already exists"):
            add(repo, tmp_path / "wt")
        assert (tmp_path / "wt" / "precious").read_text() == "x"

    def test_the_hook_runs_with_the_marker_and_without_git_dir(
        self, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hook(repo, f'echo "$TMUXORCH_AGENT_ID" > {tmp_path}/said')
        monkeypatch.setenv("GIT_DIR", "/nonexistent")
        add(repo, tmp_path / "wt")
        assert (tmp_path / "said").read_text() == "abc123\n"

    def test_a_failing_hook_is_told_and_can_be_undone(self, repo: Repo, tmp_path: Path) -> None:
        hook(repo, "echo installing >&2; echo 'no such package' >&2; exit 3")
        with pytest.raises(GitFailed, match=r"post-checkout hook failed: no such package") as told:
            add(repo, tmp_path / "wt")
        assert "installing" in told.value.stderr
        assert (tmp_path / "wt").exists()
        remove(repo, tmp_path / "wt")
        assert not (tmp_path / "wt").exists()
        assert len(list_worktrees(repo)) == 1

    def test_a_bare_repository_can_have_worktrees(self, repo: Repo, tmp_path: Path) -> None:
        sh(tmp_path, "clone", "-q", "--bare", repo.root, "bare.git")
        bare = find_repo(str(tmp_path / "bare.git"))
        add(bare, tmp_path / "wt")
        assert [w.bare for w in list_worktrees(bare)] == [True, False]
        remove(bare, tmp_path / "wt")
        assert len(list_worktrees(bare)) == 1

    def test_one_inside_the_main_worktree(self, repo: Repo) -> None:
        add(repo, Path(repo.root, ".worktrees", "x"))
        remove(repo, Path(repo.root, ".worktrees", "x"))
        assert len(list_worktrees(repo)) == 1

    def test_many_at_once_all_succeed(self, repo: Repo, tmp_path: Path) -> None:
        sh(repo.root, "config", "branch.autoSetupMerge", "always")
        with ThreadPoolExecutor(15) as pool:
            jobs = [
                pool.submit(add, repo, tmp_path / "w" / str(n), branch=f"agent/{n}", reason=f"r{n}")
                for n in range(15)
            ]
            for job in jobs:
                job.result()
        assert {w.branch for w in list_worktrees(repo)[1:]} == {f"agent/{n}" for n in range(15)}
        with ThreadPoolExecutor(15) as pool:
            list(
                pool.map(lambda n: remove(repo, tmp_path / "w" / str(n), reason=f"r{n}"), range(15))
            )
        assert len(list_worktrees(repo)) == 1

    def test_one_killed_half_way_is_made_afresh(self, repo: Repo, tmp_path: Path) -> None:
        hook(repo, f"touch {tmp_path}/hooked")
        add(repo, tmp_path / "wt")
        admin = Path(repo.common_dir, "worktrees", "wt")
        (admin / "index").unlink()
        (admin / "index.lock").write_text("")
        (tmp_path / "wt" / "a.txt").unlink()
        add(repo, tmp_path / "wt")
        assert (tmp_path / "wt" / "a.txt").read_text() == "one\n"
        assert sh(tmp_path / "wt", "status", "--porcelain") == ""


def hook(repo: Repo, script: str) -> None:
    path = Path(repo.common_dir, "hooks", "post-checkout")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


class TestRemoveWorktree:
    def test_nothing_is_left_but_the_branch(self, repo: Repo, tmp_path: Path) -> None:
        add(repo, tmp_path / "wt")
        remove(repo, tmp_path / "wt")
        assert not (tmp_path / "wt").exists()
        assert not Path(repo.common_dir, "worktrees").exists()
        assert branch_commit(repo, "agent/x")

    def test_again_is_no_failure(self, repo: Repo, tmp_path: Path) -> None:
        add(repo, tmp_path / "wt")
        remove(repo, tmp_path / "wt")
        remove(repo, tmp_path / "wt")

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_any_name(self, repo: Repo, tmp_path: Path, name: str) -> None:
        add(repo, tmp_path / name)
        remove(repo, tmp_path / name)
        assert len(list_worktrees(repo)) == 1

    def test_read_only_directories_go_too(self, repo: Repo, tmp_path: Path) -> None:
        add(repo, tmp_path / "wt")
        cache = tmp_path / "wt" / "cache" / "mod"
        cache.mkdir(parents=True)
        (cache / "f").write_text("x")
        cache.chmod(0o555)
        remove(repo, tmp_path / "wt")
        assert not (tmp_path / "wt").exists()

    def test_after_a_crash_before_the_deletion_it_carries_on(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        add(repo, tmp_path / "wt")
        (tmp_path / ".trash").mkdir()
        (tmp_path / "wt").rename(tmp_path / ".trash" / "wt")
        sh(repo.root, "worktree", "remove", "-f", "-f", str(tmp_path / "wt"))
        remove(repo, tmp_path / "wt")

    def test_a_missing_directory_is_unregistered(self, repo: Repo, tmp_path: Path) -> None:
        add(repo, tmp_path / "wt")
        subprocess.run(["rm", "-rf", str(tmp_path / "wt")], check=True)
        remove(repo, tmp_path / "wt")
        assert len(list_worktrees(repo)) == 1

    def test_another_filesystem_for_the_trash_is_no_obstacle(
        self, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add(repo, tmp_path / "wt")
        monkeypatch.setattr(os, "rename", _cross_device)
        remove(repo, tmp_path / "wt")
        assert not (tmp_path / "wt").exists()
        assert len(list_worktrees(repo)) == 1

    @pytest.mark.parametrize("lost", ["HEAD", "index", "commondir", ".git"])
    def test_a_half_made_one_goes(self, repo: Repo, tmp_path: Path, lost: str) -> None:
        add(repo, tmp_path / "wt")
        admin = Path(repo.common_dir, "worktrees", "wt")
        (admin / "locked").write_text("initializing")
        (tmp_path / "wt" / lost if lost == ".git" else admin / lost).unlink()
        remove(repo, tmp_path / "wt")
        assert not admin.exists()
        assert not (tmp_path / "wt").exists()

    def test_one_git_does_not_list_yet_goes(self, repo: Repo, tmp_path: Path) -> None:
        admin = Path(repo.common_dir, "worktrees", "wt")
        admin.mkdir(parents=True)
        (admin / "locked").write_text(REASON)
        (tmp_path / "wt").mkdir()
        remove(repo, tmp_path / "wt")
        assert not admin.exists()
        assert not (tmp_path / "wt").exists()

    @pytest.mark.parametrize("reason", [None, "", "keep", REASON + "0", "tmuxorch:other:abc123"])
    def test_one_that_is_not_ours_is_never_touched(
        self, repo: Repo, tmp_path: Path, reason: str | None
    ) -> None:
        wt = tmp_path / "wt"
        sh(repo.root, "worktree", "add", "-q", str(wt))
        if reason is not None:
            sh(repo.root, "worktree", "lock", *(["--reason", reason] if reason else []), str(wt))
        with pytest.raises(GitFailed, match="not tmuxorch's"):
            remove(repo, wt)
        assert sh(wt, "status", "--porcelain") == ""

    def test_the_main_worktree_is_never_touched(self, repo: Repo, tmp_path: Path) -> None:
        for path in [Path(repo.root), Path(repo.common_dir)]:
            with pytest.raises(GitFailed, match="main worktree"):
                remove(repo, path)
        (tmp_path / "link").symlink_to(repo.root)
        with pytest.raises(GitFailed, match="nothing was touched"):
            remove(repo, tmp_path / "link")
        assert sh(repo.root, "status", "--porcelain", "-uno") == ""

    def test_a_directory_git_does_not_know_is_never_touched(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        add(repo, tmp_path / "wt")
        subprocess.run(["rm", "-rf", f"{repo.common_dir}/worktrees/wt"], check=True)
        with pytest.raises(GitFailed, match="nothing was touched"):
            remove(repo, tmp_path / "wt")
        assert (tmp_path / "wt" / "a.txt").exists()

    def test_others_that_are_missing_stay_registered(self, repo: Repo, tmp_path: Path) -> None:
        sh(repo.root, "worktree", "add", "-q", str(tmp_path / "moved"))
        (tmp_path / "moved").rename(tmp_path / "elsewhere")
        add(repo, tmp_path / "wt")
        remove(repo, tmp_path / "wt")
        assert sh(tmp_path / "elsewhere", "status", "--porcelain") == ""


def _cross_device(*_: str) -> None:
    raise OSError(18, "Invalid cross-device link")


class TestChanges:
    def test_a_clean_worktree_at_its_base_has_no_changes(self, repo: Repo, tmp_path: Path) -> None:
        add(repo, tmp_path / "wt")
        head = sh(repo.root, "rev-parse", "HEAD")
        assert work_stats(repo, str(tmp_path / "wt"), head) == WorkStats(head, 0, 0, 0, 0)

    def test_commits_edits_and_new_files_count_once(self, repo: Repo, tmp_path: Path) -> None:
        wt, base = tmp_path / "wt", sh(repo.root, "rev-parse", "HEAD")
        add(repo, wt)
        sh(wt, "config", "status.showUntrackedFiles", "no")
        head = commit(wt, "b.txt", "1\n2\n")
        (wt / "a.txt").write_text("two\n")
        sh(wt, "add", "a.txt")
        (wt / "b.txt").write_text("1\n2\n3\n")
        (wt / "dir").mkdir()
        (wt / "dir" / "new\nfile").write_text("x\ny\n")
        (wt / "bin").write_bytes(b"\0\1\2")
        before = index_of(wt)
        assert work_stats(repo, str(wt), base) == WorkStats(head, 1, 4, 6, 1)
        text = diff(repo, str(wt), "main", base, stat=False, color=False).decode()
        assert {line for line in text.splitlines() if line[:1] in "+-"} >= {
            "-one", "+two", "+1", "+2", "+3", "+x", "+y",
        }  # fmt: skip
        assert (
            "4 files changed" in diff(repo, str(wt), "main", base, stat=True, color=False).decode()
        )
        assert b"\x1b[" in diff(repo, str(wt), "main", base, stat=False, color=True)
        assert index_of(wt) == before
        assert os.listdir(Path(repo.common_dir, "worktrees", "wt")).count("index") == 1
        assert not list(Path(repo.common_dir, "worktrees", "wt").glob("tmuxorch*"))

    def test_the_diff_applies_to_the_base(self, repo: Repo, tmp_path: Path) -> None:
        wt, base = tmp_path / "wt", sh(repo.root, "rev-parse", "HEAD")
        add(repo, wt)
        (wt / "a.txt").write_text("two\n")
        (wt / "run").write_text("#!/bin/sh\n")
        (wt / "run").chmod(0o755)
        (wt / "link").symlink_to("a.txt")
        patch = diff(repo, str(wt), "main", base, stat=False, color=False)
        subprocess.run(["git", "-C", repo.root, "apply"], input=patch, check=True)
        assert Path(repo.root, "a.txt").read_text() == "two\n"
        assert Path(repo.root, "run").stat().st_mode & stat.S_IXUSR
        assert os.readlink(Path(repo.root, "link")) == "a.txt"

    def test_what_was_taken_in_from_the_base_is_not_the_agents(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        wt, base = tmp_path / "wt", sh(repo.root, "rev-parse", "HEAD")
        add(repo, wt)
        commit(wt, "own", "own\n")
        commit(repo.root, "theirs", "theirs\n")
        sh(wt, "merge", "-q", "main")
        text = diff(repo, str(wt), "main", base, stat=False, color=False).decode()
        assert "own" in text
        assert "theirs" not in text

    def test_a_base_that_is_no_branch_or_went_away_does_not_matter(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        wt, base = tmp_path / "wt", sh(repo.root, "rev-parse", "HEAD")
        add(repo, wt)
        commit(wt, "own", "own\n")
        for name in ["HEAD", "gone", base]:
            assert b"+own" in diff(repo, str(wt), name, base, stat=False, color=False)

    def test_an_edit_in_the_same_moment_as_the_index_is_seen(
        self, repo: Repo, tmp_path: Path
    ) -> None:
        wt, base = tmp_path / "wt", sh(repo.root, "rev-parse", "HEAD")
        add(repo, wt)
        for n in range(20):
            sh(wt, "reset", "-q", "--hard")
            (wt / "a.txt").write_text("ONE\n")
            sh(wt, "add", "a.txt")
            (wt / "a.txt").write_text(f"{n:03}\n")
            assert f"+{n:03}" in diff(repo, str(wt), "main", base, stat=False, color=False).decode()


def index_of(worktree: Path) -> tuple[bytes, int]:
    index = Path(sh(worktree, "rev-parse", "--absolute-git-dir"), "index")
    return index.read_bytes(), index.stat().st_mtime_ns


class TestCopies:
    @pytest.fixture
    def wt(self, repo: Repo, tmp_path: Path) -> Path:
        Path(repo.root, ".gitignore").write_text(".env\n*.local\ncache/\n")
        add(repo, tmp_path / "wt")
        return tmp_path / "wt"

    def test_files_globs_and_directories_come_with_their_modes(self, repo: Repo, wt: Path) -> None:
        root = Path(repo.root)
        (root / ".env").write_text("secret")
        (root / ".env").chmod(0o600)
        (root / "config").mkdir()
        (root / "config" / "ä b.local").write_text("x")
        (root / "cache" / "deep").mkdir(parents=True)
        (root / "cache" / "deep" / "run").write_text("#!")
        (root / "cache" / "deep" / "run").chmod(0o755)
        (root / "cache" / "link").symlink_to("deep/run")
        copied = copy_into_worktree(repo.root, str(wt), [".env", "config/*.local", "cache", "no*"])
        assert copied == (".env", "cache/deep/run", "cache/link", "config/ä b.local")
        assert (wt / ".env").stat().st_mode & 0o777 == 0o600
        assert (wt / "cache/deep/run").stat().st_mode & 0o777 == 0o755
        assert os.readlink(wt / "cache/link") == "deep/run"

    def test_what_exists_in_the_worktree_stays(self, repo: Repo, wt: Path) -> None:
        Path(repo.root, "a.txt").write_text("edited in main")
        assert copy_into_worktree(repo.root, str(wt), ["*.txt"]) == ()
        assert (wt / "a.txt").read_text() == "one\n"

    def test_other_repositories_and_git_itself_are_passed_over(self, repo: Repo, wt: Path) -> None:
        make_repo(Path(repo.root, "nested"))
        Path(repo.root, "nested", "x.local").write_text("x")
        Path(repo.root, "x.local").write_text("x")
        copied = copy_into_worktree(repo.root, str(wt), ["**/*.local", ".git/config", "nested"])
        assert copied == ("x.local",)

    @pytest.mark.parametrize("pattern", ["../outside", "/etc/hosts", "a/../../b", "", ".", "./"])
    def test_a_pattern_that_leads_out_is_refused(self, repo: Repo, wt: Path, pattern: str) -> None:
        with pytest.raises(SetupFailed):
            copy_into_worktree(repo.root, str(wt), [pattern])

    def test_links_that_lead_out_are_refused(self, repo: Repo, wt: Path, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "f").write_text("x")
        Path(repo.root, "out").symlink_to(tmp_path / "outside")
        for pattern in ["out", "out/f"]:
            with pytest.raises(SetupFailed, match="leads out"):
                copy_into_worktree(repo.root, str(wt), [pattern])
        Path(repo.root, "in").mkdir()
        Path(repo.root, "in", "new").write_text("x")
        (wt / "in").symlink_to(tmp_path / "outside")
        with pytest.raises(SetupFailed, match="leads out"):
            copy_into_worktree(repo.root, str(wt), ["in/*"])
        assert os.listdir(tmp_path / "outside") == ["f"]


def test_git_missing_is_one_sentence(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(GitFailed, match="git was not found"):
        git(repo.root, "rev-parse", "HEAD")


def test_a_git_that_hangs_is_stopped(repo: Repo) -> None:
    sh(repo.root, "config", "alias.hang", "!sleep 60")
    started = time.monotonic()
    with pytest.raises(GitFailed, match="did not end within"):
        git(repo.root, "hang", timeout_s=0.3)
    assert time.monotonic() - started < 5


def test_our_questions_run_none_of_the_repositorys_programs(repo: Repo, tmp_path: Path) -> None:
    spy = tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    spy.chmod(0o755)
    sh(repo.root, "config", "core.fsmonitor", str(spy))
    hooks = Path(repo.common_dir, "hooks")
    hooks.mkdir(exist_ok=True)
    (hooks / "reference-transaction").symlink_to(spy)
    head = sh(repo.root, "rev-parse", "HEAD")
    git(repo.root, "update-ref", "refs/heads/b", head)
    delete_branch(repo, "b", expected=head)
    work_stats(repo, repo.root, head)
    assert not (tmp_path / "ran").exists()


def test_threads_can_ask_at_the_same_time(repo: Repo) -> None:
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(10):
                assert branch_commit(repo, "main")
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
