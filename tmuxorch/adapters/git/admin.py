"""The directories below `.git/worktrees` where git keeps what belongs to one linked worktree.

They are read without git: a git that was killed, or a power cut, leaves some of them half
made, and one empty `commondir` among them makes every `git worktree list` fail.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.deletion import delete_directory
from tmuxorch.adapters.git.location import Repo
from tmuxorch.errors import GitFailed

READ_MAX = 65_536
# Beside `worktrees`, where git looks for nothing.
GONE = "tmuxorch-gone-"
# What a worktree of a reftable repository has as its HEAD; the true one is in its tables.
REFTABLE_HEAD = "ref: refs/heads/.invalid"


@dataclass(frozen=True, slots=True)
class Admin:
    """What the files of one such directory say: "" if a file is empty, None if it is missing.

    `path` is the worktree's directory, as git spells it. Of one that may not be read nothing
    is known, so it is neither half made nor anybody's.
    """

    directory: str
    path: str | None
    head: str | None
    common: str | None
    locked: str | None
    index_is_broken: bool
    is_readable: bool = True

    @property
    def name(self) -> str:
        return os.path.basename(self.directory)

    @property
    def flaws(self) -> tuple[str, ...]:
        """The files that git needs and that are missing or empty; none if it is whole."""
        if not self.is_readable:
            return ()
        needed = (("gitdir", self.path), ("HEAD", self.head), ("commondir", self.common))
        flawed = tuple(file for file, said in needed if not said)
        return (*flawed, "index") if self.index_is_broken else flawed


def list_admins(repo: Repo) -> tuple[Admin, ...]:
    """Every directory that git keeps for a linked worktree, whole or not, by name."""
    home = os.path.join(repo.common_dir, "worktrees")
    try:
        with os.scandir(home) as entries:
            found = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(admin for path in sorted(found) for admin in read_admin(path))


def read_admin(directory: str) -> Iterator[Admin]:
    """What one says; nothing if it is not there."""
    try:
        gitdir, head, common, locked = (
            read_start(os.path.join(directory, name))
            for name in ("gitdir", "HEAD", "commondir", "locked")
        )
        index = read_start(os.path.join(directory, "index"), 4)
    except PermissionError:
        yield Admin(directory, None, None, None, None, False, is_readable=False)
        return
    if not os.path.isdir(directory):
        return  # removed while it was read
    if head is not None and not head.strip("0"):
        head = ""  # git writes zeros first, so that the directory counts as one of its own
    path = _worktree_path(directory, gitdir)
    yield Admin(directory, path, head, common, locked, index not in (None, "DIRC"))


def _worktree_path(directory: str, gitdir: str | None) -> str | None:
    """Where `gitdir` leads, without the `/.git` at its end; git 2.48 may write it relative."""
    if not gitdir:
        return gitdir
    if not os.path.isabs(gitdir):
        gitdir = canonical(os.path.join(directory, gitdir))
    return gitdir.removesuffix("/.git")


def read_start(path: str, size: int = READ_MAX) -> str | None:
    """The beginning of a regular file without its line end; None for anything else.

    Some file systems fill with NULs what a power cut left unwritten.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        return os.fsdecode(os.read(fd, size).rstrip(b"\0\r\n\t "))
    finally:
        os.close(fd)


def finish(repo: Repo, admin: Admin, path: str, *, head: str, reason: str) -> None:
    """Give a half-made one what it lacks, as for the worktree at `path`."""
    said = {
        "locked": None if admin.locked else reason,
        "gitdir": None if admin.path else os.path.join(path, ".git"),
        "HEAD": None if admin.head else head,
        "commondir": None if admin.common else "../..",
    }
    for name, words in said.items():
        if words is not None:
            write_whole(os.path.join(admin.directory, name), words + "\n" * (name != "locked"))
    if admin.index_is_broken:
        os.unlink(os.path.join(admin.directory, "index"))
        # What was staged is lost with it; the files are there, and HEAD is the next best.
        git(repo.root, f"--git-dir={admin.directory}", "read-tree", "HEAD", ok=range(256))


def drop(directory: str) -> None:
    """Make git forget one worktree: its directory is renamed first, so never seen half gone."""
    home, name = os.path.split(directory)
    aside = os.path.join(os.path.dirname(home), f"{GONE}{name}")
    if os.path.lexists(aside):
        delete_directory(aside)
    with suppress(FileNotFoundError):
        try:
            os.rename(directory, aside)
        except OSError as error:
            if error.errno != errno.EXDEV:  # as some layered file systems say
                raise
            aside = directory
        _delete_later(aside)
    with suppress(OSError):
        os.rmdir(home)  # git does so too; not while another worktree is there


def _delete_later(path: str) -> None:
    """Delete what git no longer sees; whatever stays goes when the repository is next mended."""
    try:
        delete_directory(path)
    except GitFailed:
        if os.path.dirname(path).endswith("/worktrees"):
            raise


def drop_remains(repo: Repo) -> None:
    """Delete what a `drop` that was cut off has renamed already."""
    with os.scandir(repo.common_dir) as entries:
        remains = [entry.path for entry in entries if entry.name.startswith(GONE)]
    for path in remains:
        delete_directory(path)


def write_whole(path: str, text: str) -> None:
    """All of it or nothing, also in a power cut; by a lock file, as git itself does it."""
    part = f"{path}.lock"
    with open(part, "xb") as file:
        file.write(os.fsencode(text))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def canonical(path: str) -> str:
    """As git spells it: links on the way resolved, but not the last name itself."""
    parent, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(parent), name)
