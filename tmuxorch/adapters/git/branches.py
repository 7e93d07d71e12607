"""Branches, and the commits they start from and hold."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tmuxorch.adapters.git.call import LOOK_S, git, last_words
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.git.worktrees import list_worktrees
from tmuxorch.core.stake import Commit
from tmuxorch.errors import BadName, GitFailed, GitKilled

# Refs that do not keep a commit: our own, and those of a moment (a bisect, a stash).
PASSING_REFS = (
    "refs/tmuxorch/*",
    "refs/stash",
    "refs/bisect/*",
    "refs/rewritten/*",
    "refs/worktree/*",
)


@dataclass(frozen=True, slots=True)
class Base:
    """What an agent's branch starts from, as a person knows it and as a commit."""

    name: str
    commit: str


def resolve_base(repo: Repo, base: str | None, *, cwd: str) -> Base:
    """The commit to start from; None and HEAD mean what is checked out in `cwd`."""
    if base is None or base in ("HEAD", "@"):
        return _checked_out(cwd)
    if base.startswith(("-", "^")) or not base.isprintable():
        raise GitFailed(f"{base!r} cannot be a base: give a branch, a tag or a commit")
    return _base_by_ref(repo, base) or _base_by_revision(cwd, base)


def _checked_out(cwd: str) -> Base:
    asked = ("rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD")
    done = git(cwd, *asked, ok=(0, 128))
    if done.returncode == 0:
        commit, name = os.fsdecode(done.stdout).splitlines()
        return Base(name.removeprefix("refs/heads/"), commit)
    if git(cwd, "rev-parse", "-q", "--verify", "HEAD", ok=(0, 1)).returncode == 1:
        raise GitFailed(f"the repository of {cwd} has no commit yet; make one first")
    raise GitFailed(f"HEAD of {cwd} is broken: {last_words(done.stderr.decode(errors='replace'))}")


def _base_by_ref(repo: Repo, base: str) -> Base | None:
    """A branch, then `remote/branch`, then a tag, then a branch that just one remote has."""
    if not set(base).isdisjoint("*?[\\^~:"):
        return None
    # A tag of a tag peels in two steps, so annotated tags are left to rev-parse.
    asked = ("for-each-ref", "--format=%(objecttype) %(objectname) %(refname)")
    places = [f"refs/heads/{base}", f"refs/remotes/{base}", f"refs/tags/{base}"]
    answer = git(repo.root, *asked, *places, f"refs/remotes/*/{base}").stdout
    found: dict[str, str | None] = {}
    for line in os.fsdecode(answer).splitlines():
        kind, oid, ref = line.split(" ", 2)
        found[ref] = oid if kind == "commit" else None
    for ref in places:
        if ref in found:
            commit = found[ref]
            return Base(base, commit) if commit else None
    remotes = [ref for ref in found if ref.startswith("refs/remotes/") and ref.endswith(f"/{base}")]
    names = sorted(ref.removeprefix("refs/remotes/") for ref in remotes)
    if len(names) > 1:
        raise GitFailed(f"{base} is a branch of several remotes; say {' or '.join(names)}")
    return Base(names[0], found[remotes[0]] or "") if names else None


def _base_by_revision(cwd: str, base: str) -> Base:
    asked = ("rev-parse", "-q", "--verify")
    done = git(cwd, *asked, f"{base}^{{commit}}", ok=(0, 1, 128))
    commit = done.stdout.decode().strip()
    if done.returncode == 0 and commit.isalnum():
        return Base(base, commit)
    if git(cwd, *asked, base, ok=(0, 1, 128)).returncode == 0:
        raise GitFailed(f"{base} is not a commit: give a branch, a tag or a commit as base")
    raise GitFailed(f"there is no branch, tag or commit {base} in {cwd}")


def list_bases(repo: Repo, *, timeout_s: float = LOOK_S) -> tuple[str, ...]:
    """Branches, those of remotes and tags, by the names that `resolve_base` takes; newest first."""
    asked = ("for-each-ref", "--sort=-creatordate", "--format=%(refname) %(symref)")
    places = ("refs/heads", "refs/remotes", "refs/tags")
    answer = git(repo.root, *asked, *places, timeout_s=timeout_s).stdout
    refs = (line.partition(" ")[::2] for line in os.fsdecode(answer).splitlines())
    # What only points to another, as a remote's HEAD does, has its name there already.
    names = (ref.split("/", 2)[2] for ref, target in refs if not target)
    return tuple(dict.fromkeys(name for name in names if name.isprintable()))


def check_branch_name(branch: str) -> None:
    """Refuse what `git check-ref-format --branch` refuses; `@{-1}` and `-` are not expanded."""
    parts = branch.split("/")
    wrong = (
        branch in {"@", "HEAD"}
        or branch.startswith("-")
        or branch.endswith(".")
        or ".." in branch
        or "@{" in branch
        or any(not part or part.startswith(".") or part.endswith(".lock") for part in parts)
        or any(char in " ~^:?*[\\\x7f" or char < " " for char in branch)
    )
    if wrong:
        raise BadName(f"{branch!r} is not a name git takes for a branch")


def branch_commit(repo: Repo, branch: str) -> str | None:
    """The commit a local branch is at; None only if git is sure that there is no such branch."""
    asked = ("rev-parse", "-q", "--verify", f"refs/heads/{branch}^{{commit}}")
    done = git(repo.root, *asked, ok=(0, 1))
    return done.stdout.decode().strip() if done.returncode == 0 else None


def branch_commits(repo: Repo) -> dict[str, str]:
    """The commit of every local branch."""
    asked = ("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")
    lines = os.fsdecode(git(repo.root, *asked).stdout).splitlines()
    pairs = (line.split(" ", 1) for line in lines)
    return {ref.removeprefix("refs/heads/"): oid for oid, ref in pairs}


def delete_branch(repo: Repo, branch: str, *, expected: str | None) -> None:
    """Delete a branch that is still at `expected`, and what the settings say about it.

    One that has gone already is no failure, with None only its settings are left.

    A branch that moved or is checked out in some worktree is kept, with GitFailed.
    """
    if expected is not None:
        _delete_ref(repo, branch, expected)
    # What `push -u` noted; where it noted nothing, the file that all share is not locked.
    asked = ("config", "-z", "--name-only", "--get-regexp", r"^branch\.")
    keys = os.fsdecode(git(repo.root, *asked, ok=(0, 1)).stdout).split("\0")
    if any(key.rpartition(".")[0] == f"branch.{branch}" for key in keys):
        try:
            git(repo.root, "config", "--remove-section", f"branch.{branch}")
        except GitKilled:
            raise
        except GitFailed:
            return  # somebody writes settings now: harmless


def _delete_ref(repo: Repo, branch: str, expected: str) -> None:
    for worktree in list_worktrees(repo):
        if worktree.branch == branch:
            raise GitFailed(f"the branch {branch} was kept: {worktree.path} has it checked out")
    try:
        git(repo.root, "update-ref", "-d", f"refs/heads/{branch}", expected)
    except GitFailed:
        now = branch_commit(repo, branch)
        if now == expected:
            raise
        if now is not None:
            raise GitFailed(
                f"the branch {branch} was kept: it moved from {expected[:10]} to {now[:10]}"
            ) from None


def commits_only_on(repo: Repo, tips: Sequence[str], *, besides: str | None) -> tuple[Commit, ...]:
    """The commits of `tips` that no lasting ref but the branch `besides` reaches, newest first."""
    asked = ("rev-list", "--encoding=UTF-8", "--format=%s", *tips, "--not")
    answer = git(repo.root, *asked, *lasting_refs(besides=besides)).stdout
    lines = answer.decode(errors="replace").split("\n")
    pairs = zip(lines[::2], lines[1::2], strict=False)
    return tuple(Commit(oid.removeprefix("commit "), title) for oid, title in pairs)


def lasting_refs(*, besides: str | None = None) -> tuple[str, ...]:
    """rev-list arguments for all refs that keep a commit, but for the branch `besides`."""
    ignored = [*PASSING_REFS, *([f"refs/heads/{besides}"] if besides else [])]
    return (*(f"--exclude={ref}" for ref in ignored), "--glob=refs/*")


def holds_nothing(repo: Repo, branch: str) -> bool:
    """Whether every commit of `branch` is reachable from another lasting ref."""
    return not commits_only_on(repo, [f"refs/heads/{branch}"], besides=branch)


def holding_nothing(repo: Repo, seen: Mapping[str, str]) -> set[str]:
    """Of these branches those that are still at the given commit, and that hold nothing.

    Asked for all at once: the commits that are on none but these branches are walked once,
    and a tip that is not among them, or that another of them is built on, is elsewhere too.
    """
    answer = git(repo.root, "for-each-ref", "--format=%(objectname) %(refname)").stdout
    refs = dict(line.split(" ", 1)[::-1] for line in os.fsdecode(answer).splitlines())
    there = {b: oid for b, oid in seen.items() if refs.get(f"refs/heads/{b}") == oid}
    if not there:
        return set()
    passing = tuple(ref.removesuffix("*") for ref in PASSING_REFS)
    lasting = {
        oid
        for ref, oid in refs.items()
        if ref.removeprefix("refs/heads/") not in there and not ref.startswith(passing)
    }
    tips = Counter(there.values())
    asked = [*tips, *(f"^{oid}" for oid in lasting)]
    lines = git(
        repo.root, "rev-list", "--parents", "--stdin", stdin="\n".join(asked).encode()
    ).stdout.decode()
    own, built_on = set[str](), set[str]()
    for line in lines.splitlines():
        commit, *parents = line.split(" ")
        own.add(commit)
        built_on.update(parents)
    return {b for b, tip in there.items() if tip not in own or tip in built_on or tips[tip] > 1}
