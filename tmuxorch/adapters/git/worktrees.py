"""Linked worktrees: added, listed and removed, only those whose lock reason is ours.

Whoever adds or removes holds the repository's lock: git removes its directory of worktrees
with the last one, under the feet of another addition.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from tmuxorch.adapters.git.admin import (
    REFTABLE_HEAD,
    canonical,
    drop,
    list_admins,
    read_admin,
    read_start,
)
from tmuxorch.adapters.git.call import CHECKOUT_S, call_git, describe_end, failure, git, last_words
from tmuxorch.adapters.git.deletion import delete_directory
from tmuxorch.adapters.git.inner import forget_inner
from tmuxorch.adapters.git.location import Repo, git_dir
from tmuxorch.adapters.git.lockfiles import describe_lock
from tmuxorch.errors import GitFailed, NoRepository

# git's own word for a worktree that it was killed in the middle of making.
HALF_MADE = "initializing"


@dataclass(frozen=True, slots=True)
class Worktree:
    """One worktree as git lists it; `locked_reason` is None if it is not locked.

    One that is not `whole` lacks files of git's own: it was never finished, or not removed.
    """

    path: str
    head: str | None
    branch: str | None
    locked_reason: str | None
    bare: bool
    prunable: bool
    whole: bool = True


def list_worktrees(repo: Repo) -> tuple[Worktree, ...]:
    """Every worktree git knows of, the main one first, read off git's own files.

    One that does not say where its directory is comes in no list, as with git.
    """
    admins = [(admin.path, admin) for admin in list_admins(repo) if admin.path]
    heads = {admin.directory: _head(repo, admin.directory, admin.head) for _, admin in admins}
    said = read_start(os.path.join(repo.common_dir, "HEAD"))
    main = (None, None) if repo.bare else _head(repo, repo.common_dir, said)
    commits = _commits_of(repo, {ref for ref, _ in (main, *heads.values()) if ref})
    listed = [Worktree(repo.root, *_spelled(main, commits), None, repo.bare, False)]
    for path, admin in admins:
        found = Worktree(
            path,
            *_spelled(heads[admin.directory], commits),
            locked_reason=admin.locked,
            bare=False,
            prunable=admin.locked is None and not os.path.lexists(f"{path}/.git"),
            whole=not admin.flaws,
        )
        listed.append(found)
    return tuple(listed)


# A ref and no commit yet, or no ref and a commit (a detached HEAD), or nothing known.
_Head = tuple[str | None, str | None]


def _head(repo: Repo, own: str, said: str | None) -> _Head:
    if said == REFTABLE_HEAD:
        asked = ("rev-parse", "-q", "--verify", "HEAD^{commit}")
        named = git(repo.root, f"--git-dir={own}", "symbolic-ref", "-q", "HEAD", ok=(0, 1, 128))
        if ref := os.fsdecode(named.stdout).strip():
            return ref, None
        done = git(repo.root, f"--git-dir={own}", *asked, ok=(0, 1, 128))
        return None, done.stdout.decode().strip() or None
    if not said or not said.strip("0"):
        return None, None
    if said.startswith("ref:"):
        return said.removeprefix("ref:").strip(), None
    return None, said


def _commits_of(repo: Repo, refs: set[str]) -> dict[str, str]:
    """Where the refs are: read where each has a file of its own, else git is asked once."""
    found = {}
    for ref in refs:
        said = read_start(os.path.join(repo.common_dir, ref))
        if said and said.isalnum():
            found[ref] = said
    if others := sorted(refs - found.keys()):
        asked = ("for-each-ref", "--format=%(objectname) %(refname)", *others)
        for line in os.fsdecode(git(repo.root, *asked).stdout).splitlines():
            oid, _, ref = line.partition(" ")
            found[ref] = oid
    return found


def _spelled(head: _Head, commits: Mapping[str, str]) -> _Head:
    """Commit and branch, as a `Worktree` has them."""
    ref, commit = head
    if ref is None:
        return commit, None
    return commits.get(ref), ref.removeprefix("refs/heads/")


def add_worktree(
    repo: Repo,
    path: str,
    *,
    branch: str,
    new_branch: bool,
    commit: str,
    reason: str,
    marker: Mapping[str, str],
    checkout: bool = True,
    on_output: Callable[[bytes], None] | None = None,
) -> str:
    """Make a worktree at `path` on `branch`, locked with `reason` from its first moment.

    Returns git's directory for it. Already done with the same reason is success; half done is
    taken back and done again. Without `checkout` it is made empty.
    The repository's post-checkout hook and filters run, with `marker` in their environment;
    when the hook fails, worktree and branch are there all the same, for the caller to undo.
    """
    if admin := _admin_of(repo, reason):
        if _is_complete(admin, path):
            return admin
        _take_back(repo, path, reason)
        asked = ("rev-parse", "-q", "--verify", f"refs/heads/{branch}")
        made = git(repo.root, *asked, ok=(0, 1)).stdout.decode().strip()
        new_branch = new_branch and made != commit
    # Tracking writes the shared config, where parallel additions fail on its lock.
    start = ["--no-track", "-b", branch, path, commit] if new_branch else [path, branch]
    options = [] if checkout else ["--no-checkout"]
    arguments = ["worktree", "add", *options, "--lock", "--reason", reason, *start]
    done = call_git(repo.root, arguments, env=marker, timeout_s=CHECKOUT_S, on_output=on_output)
    if done.returncode == 0:
        return _made_for(path)
    if done.returncode < 0:
        raise failure(done, f"the worktree {path} could not be made: {describe_end(done)}")
    said = (done.stderr or done.stdout).decode(errors="replace")
    admin = _admin_of(repo, reason)
    if admin and _is_complete(admin, path):
        what = "was made, but the repository's post-checkout hook failed"
    else:
        what = "could not be made"
    why = f"{last_words(said)}{describe_lock(said)}"
    raise GitFailed(f"the worktree {path} {what}: {why}", stderr=said)


def forget_worktree(repo: Repo, path: str, *, reason: str) -> None:
    """Make git forget the worktree that was at `path`, if its lock reason is exactly `reason`.

    Those that were inside it are forgotten too.
    What is done already is skipped, so that it can be called again after a crash anywhere.
    """
    for admin in list_admins(repo):
        if admin.path == canonical(path) and admin.locked in (reason, HALF_MADE):
            drop(admin.directory)
    forget_inner(repo, path)
    _remove_traces(repo, path, reason)


def discard_worktree(repo: Repo, path: str, *, reason: str, trash: str) -> None:
    """Remove a worktree that holds nothing but what was just written there by us."""
    if is_ours(repo, path, reason):
        moved = _move_away(path, trash)
        forget_worktree(repo, path, reason=reason)
        if moved == path and os.path.lexists(path):
            delete_directory(path)
    else:
        _remove_traces(repo, path, reason)
    if os.path.lexists(trash):
        with suppress(GitFailed):  # a sweep finds it there
            delete_directory(trash)


def is_ours(repo: Repo, path: str, reason: str) -> bool:
    """Whether git lists `path` with our reason; False if nothing, or nothing much, is there.

    Anything else is not ours to touch and raises.
    """
    path = canonical(path)
    main, *linked = list_worktrees(repo)
    if path in (main.path, repo.root, repo.common_dir):
        raise GitFailed(f"{path} is the main worktree of its repository; nothing was touched")
    for worktree in linked:
        if worktree.path == path:
            if worktree.locked_reason in (reason, HALF_MADE):
                return True
            raise GitFailed(f"the worktree {path} is not tmuxorch's; nothing was touched")
    if os.path.lexists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise GitFailed(f"git knows no worktree at {path}; nothing was touched")
    return False


def _move_away(path: str, trash: str) -> str:
    """Rename `path` to `trash`; returns where it is now, or was before it went."""
    try:
        os.makedirs(os.path.dirname(trash), mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            os.rename(path, trash)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return path
        raise GitFailed(f"{path} could not be moved to {trash}: {error.strerror}") from None
    return trash


def _remove_traces(repo: Repo, path: str, reason: str) -> None:
    """Remove what git leaves and does not list when killed in its first moments."""
    with suppress(OSError):
        os.rmdir(path)
    for admin in list_admins(repo):
        if admin.locked == reason and not admin.path:
            drop(admin.directory)


def _take_back(repo: Repo, path: str, reason: str) -> None:
    if is_ours(repo, path, reason):
        delete_directory(path)
        forget_worktree(repo, path, reason=reason)
    else:
        _remove_traces(repo, path, reason)


def find_admin_dir(repo: Repo, path: str, *, recorded: str | None = None) -> str | None:
    """Where git keeps the index and logs of the worktree at `path`, which may be missing.

    The `recorded` place is believed as long as it is still for this worktree.
    """
    path = canonical(path)
    if recorded is not None and any(admin.path == path for admin in read_admin(recorded)):
        return recorded
    return next((admin.directory for admin in list_admins(repo) if admin.path == path), None)


def _made_for(path: str) -> str:
    """The same of a worktree that git has just made, so that its `.git` is git's own."""
    try:
        return git_dir(path)
    except NoRepository as error:
        raise GitFailed(f"the worktree {path} was made, but {error.message}") from None


def _admin_of(repo: Repo, reason: str) -> str | None:
    """The same by the reason of its lock."""
    return next((a.directory for a in list_admins(repo) if a.locked == reason), None)


def _is_complete(admin: str, path: str) -> bool:
    """Whether the checkout came to its end, which is when git writes the index."""
    return os.path.exists(os.path.join(admin, "index")) and os.path.lexists(
        os.path.join(path, ".git")
    )
