"""Linked worktrees: added, listed and removed, only those whose lock reason is ours.

Whoever adds or removes holds the repository's lock: git removes its directory of worktrees
with the last one, under the feet of another addition.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tmuxorch.adapters.git.call import CHECKOUT_S, call_git, git, last_words
from tmuxorch.adapters.gitdir import Repo, read_line
from tmuxorch.adapters.run import Timeout, run
from tmuxorch.errors import GitFailed

DELETE_S = 3600.0
# git's own word for a worktree that it was killed in the middle of making.
HALF_MADE = "initializing"
# Read-only directories (Go's module cache) stop `rm` until they are made writable.
DELETE = 'rm -rf -- "$1" 2>/dev/null || { chmod -R u+rwx -- "$1"; rm -rf -- "$1"; }'


@dataclass(frozen=True, slots=True)
class Worktree:
    """One worktree as git lists it; `locked_reason` is None if it is not locked."""

    path: str
    head: str | None
    branch: str | None
    locked_reason: str | None
    bare: bool
    prunable: bool


def list_worktrees(repo: Repo) -> tuple[Worktree, ...]:
    """Every worktree git knows of, the main one first."""
    asked = ("worktree", "list", "--porcelain")
    done = git(repo.root, *asked, "-z", ok=(0, 129))
    end = "\0"
    if done.returncode == 129:  # git before 2.36 has no -z
        done, end = git(repo.root, *asked), "\n"
    blocks = os.fsdecode(done.stdout).split(end * 2)
    return tuple(_parse(block.split(end)) for block in blocks if block)


def _parse(lines: list[str]) -> Worktree:
    facts = {key: value for key, _, value in (line.partition(" ") for line in lines)}
    branch = facts.get("branch")
    return Worktree(
        path=facts["worktree"],
        head=facts.get("HEAD"),
        branch=branch.removeprefix("refs/heads/") if branch else None,
        locked_reason=facts.get("locked"),
        bare="bare" in facts,
        prunable="prunable" in facts,
    )


def add_worktree(
    repo: Repo,
    path: str,
    *,
    branch: str,
    new_branch: bool,
    commit: str,
    reason: str,
    marker: Mapping[str, str],
    options: Sequence[str] = (),
    on_output: Callable[[bytes], None] | None = None,
) -> None:
    """Make a worktree at `path` on `branch`, locked with `reason` from its first moment.

    Already done with the same reason is success; half done is taken back and done again.
    The repository's post-checkout hook and filters run, with `marker` in their environment;
    when the hook fails, worktree and branch are there all the same, for the caller to undo.
    """
    if admin := _admin_dir(repo, "locked", reason):
        if _is_complete(admin, path):
            return
        _take_back(repo, path, reason)
        asked = ("rev-parse", "-q", "--verify", f"refs/heads/{branch}")
        made = git(repo.root, *asked, ok=(0, 1)).stdout.decode().strip()
        new_branch = new_branch and made != commit
    # Tracking writes the shared config, where parallel additions fail on its lock.
    start = ["--no-track", "-b", branch, path, commit] if new_branch else [path, branch]
    arguments = [*options, "worktree", "add", "--lock", "--reason", reason, *start]
    done = call_git(repo.root, arguments, env=marker, timeout_s=CHECKOUT_S, on_output=on_output)
    if done.returncode == 0:
        return
    said = (done.stderr or done.stdout).decode(errors="replace")
    admin = _admin_dir(repo, "locked", reason)
    if admin and _is_complete(admin, path):
        what = "was made, but the repository's post-checkout hook failed"
    else:
        what = "could not be made"
    raise GitFailed(f"the worktree {path} {what}: {last_words(said)}", stderr=said)


def remove_worktree(
    repo: Repo,
    path: str,
    *,
    reason: str,
    trash: str,
    check: Callable[[str], None] | None = None,
    background: bool = False,
) -> None:
    """Remove the linked worktree at `path` if its lock reason is exactly `reason`.

    It is renamed to `trash` (where that is another filesystem it stays in place) and `check`
    gets a last look at it there: if that raises, it is put back and nothing has changed. Then
    git forgets this one worktree and the directory is deleted, in the background if wanted.
    What is done already is skipped, so that it can be called again after a crash anywhere.
    """
    if _is_ours(repo, path, reason):
        moved = _move_away(path, trash)
        try:
            if check is not None and os.path.lexists(moved):
                check(moved)
        except BaseException:
            if moved == trash:
                os.rename(trash, path)
            raise
        if moved == path:
            _delete(path)
        _forget(repo, path)
    else:
        _remove_traces(repo, path, reason)
    if os.path.lexists(trash):
        _delete(trash, background=background)


def _is_ours(repo: Repo, path: str, reason: str) -> bool:
    """Whether git lists `path` with our reason; False if nothing, or nothing much, is there.

    Anything else is not ours to touch and raises.
    """
    path = _canonical(path)
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


def _forget(repo: Repo, path: str) -> None:
    """Make git drop this one worktree, whose directory has gone; never a prune of others."""
    admin = find_admin_dir(repo, path)
    if admin and os.path.lexists(path):
        _delete(admin)  # somebody made the directory again: git would refuse, and it is theirs
    else:
        git(repo.root, "worktree", "remove", "-f", "-f", _canonical(path))


def _remove_traces(repo: Repo, path: str, reason: str) -> None:
    """Remove what git leaves and does not list when killed in its first moments."""
    with suppress(OSError):
        os.rmdir(path)
    admin = _admin_dir(repo, "locked", reason)
    if admin and not os.path.exists(os.path.join(admin, "gitdir")):
        _delete(admin)


def _take_back(repo: Repo, path: str, reason: str) -> None:
    if _is_ours(repo, path, reason):
        _delete(path)
        _forget(repo, path)
    else:
        _remove_traces(repo, path, reason)


def find_admin_dir(repo: Repo, path: str) -> str | None:
    """Where git keeps the index and logs of the worktree at `path`, which may be missing."""
    return _admin_dir(repo, "gitdir", os.path.join(_canonical(path), ".git"))


def _admin_dir(repo: Repo, file: str, line: str) -> str | None:
    """The directory git keeps a worktree's things in, by what one of its files says."""
    home = os.path.join(repo.common_dir, "worktrees")
    for name in os.listdir(home) if os.path.isdir(home) else ():
        admin = os.path.join(home, name)
        with suppress(FileNotFoundError, NotADirectoryError):
            if read_line(os.path.join(admin, file)) == line:
                return admin
    return None


def _is_complete(admin: str, path: str) -> bool:
    """Whether the checkout came to its end, which is when git writes the index."""
    return os.path.exists(os.path.join(admin, "index")) and os.path.lexists(
        os.path.join(path, ".git")
    )


def _canonical(path: str) -> str:
    """As git spells it: links on the way resolved, but not the last name itself."""
    parent, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(parent), name)


def delete_directory(path: str) -> None:
    """Delete a directory with all below it, read-only ones too."""
    _delete(path)


def _delete(path: str, *, background: bool = False) -> None:
    script = f"{{ {DELETE} ; }} >/dev/null 2>&1 &" if background else DELETE
    try:
        done = run(("sh", "-c", script, "sh", path), timeout_s=DELETE_S)
    except Timeout as late:
        raise GitFailed(f"{path} was not deleted: {late}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise GitFailed(f"{path} could not be deleted: {last_words(said)}", stderr=said)
