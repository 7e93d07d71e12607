"""Which repository a directory is in, read off git's own files.

`tmuxorch ls` imports this module, so git itself is run only for the rare layouts that the
files do not plainly tell.
"""

from __future__ import annotations

import os

from tmuxorch.errors import BadText, NoRepository
from tmuxorch.reading import read_regular

_LINE_MAX_BYTES = 65_536
_CONFIG_MAX_BYTES = 10_000_000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from tmuxorch.values import dataclass


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository; `root` is its main worktree's top, or the repository itself if bare."""

    root: str
    common_dir: str
    bare: bool


def locate(path: str) -> Repo | None:
    """The repository that `path` is in, None if there is none or it is broken."""
    try:
        return find_repo(path)
    except NoRepository:
        return None


def check_text(root: str) -> str:
    """The path, or BadText: no record can hold one that is not UTF-8."""
    try:
        root.encode()
    except UnicodeEncodeError:
        raise BadText(
            f"the path of the repository {os.fsencode(root)!r} is not valid UTF-8; rename it first"
        ) from None
    return root


def find_repo(path: str) -> Repo:
    """The repository that `path` is in, found as git finds it, without running git if it can."""
    top = os.path.realpath(path)
    if not os.path.isdir(top):
        raise NoRepository(f"{path} is not a directory")
    why = "is not inside a git repository; run `git init` first"
    while True:
        dot_git = os.path.join(top, ".git")
        if os.path.isfile(dot_git):
            return _repo_at(_follow_gitfile(dot_git), top)
        if _is_git_dir(dot_git):
            return _repo_at(dot_git, top)
        if _is_git_dir(top):
            return _repo_at(top, None)
        if os.path.lexists(dot_git):
            why = f"is in no git repository: {dot_git} is broken"
        if top == (top := os.path.dirname(top)):
            raise NoRepository(f"{path} {why}")


def git_dir(worktree: str) -> str:
    """Where git keeps what belongs to just this worktree: its HEAD, index and logs."""
    dot_git = os.path.join(worktree, ".git")
    if os.path.isfile(dot_git):
        return _follow_gitfile(dot_git)
    if _is_git_dir(dot_git):
        return os.path.realpath(dot_git)
    raise NoRepository(f"{worktree} is not the top of a git worktree")


def _follow_gitfile(dot_git: str) -> str:
    try:
        words = read_line(dot_git)
    except OSError as error:
        raise NoRepository(f"{dot_git} is broken: {error.strerror}") from None
    target = os.path.join(os.path.dirname(dot_git), words.removeprefix("gitdir: "))
    if not words.startswith("gitdir: ") or not _is_git_dir(target):
        raise NoRepository(f"{dot_git} is broken: it does not lead to a git repository")
    return os.path.realpath(target)


def _is_git_dir(path: str) -> bool:
    """As git tells one: a HEAD, and objects and refs of its own or in a common directory."""
    if not os.path.lexists(os.path.join(path, "HEAD")):
        return False
    common = _common_dir(path)
    return os.path.isdir(os.path.join(common, "objects")) and os.path.isdir(
        os.path.join(common, "refs")
    )


def _common_dir(own: str) -> str:
    try:
        return os.path.realpath(os.path.join(own, read_line(os.path.join(own, "commondir"))))
    except OSError:
        return os.path.realpath(own)


def read_line(path: str) -> str:
    """The one line of a file in which git keeps a path, a ref or a reason."""
    return os.fsdecode(read_regular(path, limit=_LINE_MAX_BYTES).rstrip(b"\r\n"))


def _repo_at(own: str, top: str | None) -> Repo:
    """The repository of the git directory `own`, the `.git` of `top` or found by itself."""
    common = _common_dir(own)
    bare, worktree = _layout(common)
    if not bare:
        if worktree:
            return Repo(os.path.realpath(os.path.join(common, worktree)), common, bare=False)
        if top and common == os.path.realpath(own):
            return Repo(top, common, bare=False)
        if os.path.basename(common) == ".git":
            return Repo(os.path.dirname(common), common, bare=False)
    # With `--separate-git-dir`, a linked worktree cannot tell where the main one is.
    return Repo(common, common, bare=True)


def _layout(common: str) -> tuple[bool, str]:
    """`core.bare` and `core.worktree`; git is asked unless the file plainly has the usual."""
    try:
        words = read_regular(os.path.join(common, "config"), limit=_CONFIG_MAX_BYTES).lower()
    except FileNotFoundError:
        words = b""
    except OSError as error:
        raise NoRepository(f"{common} is broken: {error.strerror}: {error.filename}") from None
    usual = words.count(b"bare") == 1 and b"bare = false" in words
    if usual and b"worktree" not in words and b"include" not in words:
        return False, ""
    from tmuxorch.adapters.git.call import git  # here: 10 ms that `ls` does not need

    asked = ("config", "-z", "--get-regexp", r"^core\.(bare|worktree)$")
    answer = git(common, f"--git-dir={common}", *asked, ok=(0, 1)).stdout
    settings = dict(pair.partition("\n")[::2] for pair in os.fsdecode(answer).split("\0") if pair)
    return settings.get("core.bare") == "true", settings.get("core.worktree", "")
