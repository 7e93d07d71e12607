"""Merging in the object store alone, and moving a branch to the result.

A merge is tried, and its commits are made, without any worktree. Only then is the branch moved,
in one step that git refuses by itself if it would overwrite something.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tmuxorch.adapters.git.branches import branch_commit
from tmuxorch.adapters.git.call import CHECKOUT_S, call_git, describe_end, failure, git, last_words
from tmuxorch.adapters.git.checkout import Checkout
from tmuxorch.adapters.git.location import Repo, read_line
from tmuxorch.adapters.git.worktrees import Worktree, find_admin_dir, list_worktrees
from tmuxorch.core.stake import Commit
from tmuxorch.errors import GitFailed, GitKilled, GitTooOld, MergeConflict

_FALSE = ("false", "no", "off", "0", "")
# Neither the person's settings nor the branch's change what this one merge is: no squash, no
# stash of edits, and a file that git ignores is as precious as any other.
_FORWARD = ("merge", "--ff-only", "--no-squash", "--no-autostash", "--no-overwrite-ignore", "-q")


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """The person's own `merge.ff` (None if not set) and whether commits are to be signed."""

    fast_forward: str | None
    sign: bool


def read_merge_settings(repo: Repo) -> MergeSettings:
    asked = ("config", "-z", "--get-regexp", r"^(merge\.ff|commit\.gpgsign)$")
    answer = git(repo.root, *asked, ok=(0, 1)).stdout.decode(errors="replace")
    told = {key: value for key, _, value in (pair.partition("\n") for pair in answer.split("\0"))}
    forward = told.get("merge.ff")
    if forward is not None and forward != "only":
        forward = "no" if forward.lower() in _FALSE else "yes"
    return MergeSettings(forward, told.get("commit.gpgsign", "no").lower() not in _FALSE)


def share_history(repo: Repo, one: str, other: str) -> bool:
    return git(repo.root, "merge-base", one, other, ok=(0, 1)).returncode == 0


def is_ancestor(repo: Repo, older: str, newer: str) -> bool:
    asked = ("merge-base", "--is-ancestor", older, newer)
    return git(repo.root, *asked, ok=(0, 1)).returncode == 0


def tree_of(repo: Repo, commit: str) -> str:
    return git(repo.root, "rev-parse", f"{commit}^{{tree}}").stdout.decode().strip()


def commits_between(repo: Repo, base: str, head: str) -> tuple[Commit, ...]:
    """What `head` has and `base` lacks, oldest first."""
    return _listed(repo, "--topo-order", "--reverse", f"{base}..{head}")


def commits_to_replay(repo: Repo, base: str, head: str) -> tuple[Commit, ...]:
    """The same without commits whose change `base` has already; GitFailed if merges are among."""
    if int(git(repo.root, "rev-list", "--count", "--merges", f"{base}..{head}").stdout):
        raise GitFailed(
            "its branch holds merge commits, which cannot be replayed; merge it without --rebase, "
            "or with --squash"
        )
    options = ("--topo-order", "--reverse", "--right-only", "--cherry-pick")
    return _listed(repo, *options, f"{base}...{head}")


def _listed(repo: Repo, *arguments: str) -> tuple[Commit, ...]:
    asked = ("rev-list", "--encoding=UTF-8", "--format=%s", *arguments)
    lines = git(repo.root, *asked).stdout.decode(errors="replace").split("\n")
    pairs = zip(lines[::2], lines[1::2], strict=False)
    return tuple(Commit(oid.removeprefix("commit "), title) for oid, title in pairs)


def merge_trees(repo: Repo, ours: str, theirs: str) -> str:
    """The tree of both commits merged; `MergeConflict` carries the files that clash."""
    asked = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    done = git(repo.root, *asked, ok=(0, 1, 128, 129), timeout_s=CHECKOUT_S)
    if done.returncode == 129:
        raise GitTooOld(
            "merging what has diverged needs git 2.38 or newer; nothing was changed: rebase its "
            "branch in its worktree, then merge it"
        )
    tree, *clashing = os.fsdecode(done.stdout).rstrip("\0").split("\0")
    if done.returncode == 0:
        return tree
    if done.returncode == 1 and clashing:
        raise MergeConflict("files clash", files=tuple(dict.fromkeys(clashing)))
    raise GitFailed(f"git cannot merge: {last_words(done.stderr.decode(errors='replace'))}")


def commit_tree(
    repo: Repo,
    tree: str,
    parents: Sequence[str],
    message: bytes,
    *,
    sign: bool,
    env: dict[str, str] | None = None,
    encoding: str = "UTF-8",
) -> str:
    """Make a commit; no ref holds it yet. It is the person's own unless `env` names an author."""
    named = [word for parent in parents for word in ("-p", parent)]
    options = ("-c", f"i18n.commitEncoding={encoding}")
    asked = (*options, "commit-tree", *(["-S"] if sign else []), *named, tree)
    try:
        return git(repo.root, *asked, stdin=message, env=env).stdout.decode().strip()
    except GitKilled:
        raise
    except GitFailed as refused:
        raise GitFailed(_why_no_commit(refused.stderr), stderr=refused.stderr) from None


def _why_no_commit(said: str) -> str:
    """git's reasons not to make a commit, as what to do about it."""
    lines = [line.strip() for line in said.splitlines()]
    if any("tell me who you are" in line or "empty ident" in line for line in lines):
        return (
            "git does not know who you are; say so with `git config --global user.name NAME` and "
            "`git config --global user.email ADDRESS`"
        )
    unsigned = [line for line in lines if "sign" in line]
    if unsigned:
        why = unsigned[-1].removeprefix("error: ").removeprefix("fatal: ")
        return f"the commit could not be signed (commit.gpgSign): {why}"
    return f"git made no commit: {last_words(said)}"


def replay(repo: Repo, onto: str, commits: Iterable[Commit], *, sign: bool) -> str:
    """Make each commit anew on top of `onto`, author and message kept; returns the last.

    One whose change is there already is left out.
    """
    tip, tip_tree = onto, tree_of(repo, onto)
    for commit in commits:
        # Both have the commit's parent as their only common past, so just its change is merged.
        stand_in = _stand_in(repo, tip_tree, f"{commit.oid}^")
        try:
            tree = merge_trees(repo, stand_in, commit.oid)
        except MergeConflict as conflict:
            raise MergeConflict(f"{commit.oid[:10]} clashes", files=conflict.files) from None
        if tree != tip_tree:
            tip, tip_tree = _copy_commit(repo, commit.oid, tree, tip, sign=sign), tree
    return tip


def _stand_in(repo: Repo, tree: str, parent: str) -> str:
    env = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", "tmuxorch"), ("EMAIL", "tmuxorch@localhost"))
    }
    return commit_tree(repo, tree, [parent], b"stand-in\n", sign=False, env=env)


def _copy_commit(repo: Repo, oid: str, tree: str, parent: str, *, sign: bool) -> str:
    head, _, message = git(repo.root, "cat-file", "commit", oid).stdout.partition(b"\n\n")
    fields = dict(line.split(b" ", 1) for line in head.split(b"\n") if line[:1] != b" ")
    name, _, rest = fields[b"author"].rpartition(b" <")
    address, _, date = rest.rpartition(b"> ")
    env = {
        "GIT_AUTHOR_NAME": os.fsdecode(name),
        "GIT_AUTHOR_EMAIL": os.fsdecode(address),
        "GIT_AUTHOR_DATE": "@" + os.fsdecode(date),
    }
    encoding = fields.get(b"encoding", b"UTF-8").decode(errors="replace")
    return commit_tree(repo, tree, [parent], message, sign=sign, env=env, encoding=encoding)


def read_message(repo: Repo, commit: str) -> bytes:
    asked = ("log", "-1", "--no-show-signature", "--encoding=UTF-8", "--format=%B", commit)
    return git(repo.root, *asked).stdout


def commit_everything(checkout: Checkout, message: str) -> None:
    """Commit all changed and new files of a worktree as the person would, hooks and all."""
    where = [f"--git-dir={checkout.own}", f"--work-tree={checkout.top}"]
    env = {"LC_ALL": "C"}
    done = call_git(checkout.top, [*where, "add", "-A"], env=env, timeout_s=CHECKOUT_S)
    if done.returncode == 0:
        asked = [*where, "commit", "-q", "-F", "-"]
        stdin = message.encode()
        done = call_git(checkout.top, asked, env=env, timeout_s=CHECKOUT_S, stdin=stdin)
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        why = describe_end(done) if done.returncode < 0 else _why_no_commit(said)
        raise failure(done, f"{why}; the files are as they were")


def observe_checkouts(repo: Repo, branch: str) -> tuple[Worktree, ...]:
    """The worktrees that have the branch checked out, or will have it when their rebase ends."""
    return tuple(
        found
        for found in list_worktrees(repo)
        if found.branch == branch or _is_rebasing(repo, found, branch)
    )


def _is_rebasing(repo: Repo, worktree: Worktree, branch: str) -> bool:
    if worktree.bare or worktree.branch is not None:
        return False
    own = find_admin_dir(repo, worktree.path) or repo.common_dir
    for state in ("rebase-merge", "rebase-apply"):
        try:
            if read_line(f"{own}/{state}/head-name").strip() == f"refs/heads/{branch}":
                return True
        except OSError:
            continue
    return False


def move_branch(repo: Repo, branch: str, new: str, *, expected: str, why: str) -> None:
    """Move a branch that nobody has checked out, if it is still at `expected`."""
    try:
        git(repo.root, "update-ref", "-m", why, f"refs/heads/{branch}", new, expected)
    except GitKilled:
        if branch_commit(repo, branch) != new:
            raise


def forward_checkout(checkout: str, branch: str, new: str) -> None:
    """Bring a checked-out branch and its files forward to `new`, hooks and all.

    git refuses, and has changed nothing, if an edit or a file would be overwritten.
    """
    # By way of a variable: `-c` cannot name a branch that has an equals sign.
    plain = f"--config-env=branch.{branch}.mergeOptions=TMUXORCH_NONE"
    env = {"LC_ALL": "C", "TMUXORCH_NONE": ""}
    done = call_git(checkout, [plain, *_FORWARD, new], env=env, timeout_s=CHECKOUT_S)
    if done.returncode == 0:
        return
    said = done.stderr.decode(errors="replace")
    in_the_way = [line.strip() for line in said.splitlines() if line.startswith("\t")]
    if in_the_way:
        shown = ", ".join(in_the_way[:5]) + (" and more" if len(in_the_way) > 5 else "")
        raise GitFailed(
            f"{branch} is checked out in {checkout}, where uncommitted files would be overwritten: "
            f"{shown}; commit or move them first",
            stderr=said,
        )
    raise failure(
        done,
        f"{branch} is checked out in {checkout} and could not be brought forward there: "
        f"{describe_end(done)}",
    )
