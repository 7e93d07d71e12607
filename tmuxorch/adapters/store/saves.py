"""A save on disk: a directory that only its owner can enter.

`files/` is the worktree as it was, less what its commit brings back byte for byte; `git/` is
git's directory for it; `staged.pack` has the objects that only its index names; `inner/0` and
so on have the same of linked worktrees that were inside it, whose files are among its own;
`manifest`,
written last, says what a restore has to bring back. Without it the save is not whole. Once it
is `final`, `files/` may lack what the commit has, and is no longer a picture of the worktree.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from tmuxorch.adapters.store.manifest_rules import check_fields
from tmuxorch.adapters.system.treewalk import DIRECTORY, walk
from tmuxorch.errors import CannotRestore, CannotSave
from tmuxorch.reading import read_regular

VERSION = 1
MANIFEST = "manifest"
MANIFEST_MAX = 1 << 30
FINAL = "final"
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Permissions that a restored file does not get: whoever restores may be another user.
DANGEROUS = stat.S_ISUID | stat.S_ISGID


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a restore has to bring back.

    `kept` are the paths in `files/` with mode and size, `gone` those of the commit `head` that
    were not there; all others are as in `head`. `whole` is False if the directory itself was
    missing. `inner` are the linked worktrees inside: where each was, git's directory for it, the
    commit and the branch of its HEAD. `commits` are those that may hang from no branch, `pack`
    the kept pack that has them, `top` and `admin` where the worktree and its git directory were.
    """

    head: str | None
    branch: str | None
    tip: str | None
    whole: bool
    usual: int
    kept: tuple[tuple[str, int, int], ...] = ()
    gone: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    pack: str | None = None
    admin: str | None = None
    top: str = ""
    inner: tuple[tuple[str, str, str | None, str | None], ...] = ()


def write_manifest(save: str, manifest: Manifest) -> None:
    """Complete the save; whoever sees the manifest sees all of it."""
    part = f"{save}/{MANIFEST}.part"
    text = json.dumps({"version": VERSION, **asdict(manifest)})
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, f"{save}/{MANIFEST}")
        for directory in (save, os.path.dirname(save)):
            _sync(directory)
    except OSError as error:
        raise CannotSave(f"{part} could not be written: {error.strerror}") from None
    if read_manifest(save) != manifest:
        raise CannotSave(f"{save}/{MANIFEST} does not hold what was written to it")


def is_whole(save: str) -> bool:
    return os.path.isfile(f"{save}/{MANIFEST}")


def close(save: str) -> None:
    """Mark a whole save as final: from now on files go that its commit brings back."""
    os.close(os.open(f"{save}/{FINAL}", os.O_WRONLY | os.O_CREAT, 0o600))


def is_final(save: str) -> bool:
    """Whether nothing may be looked at there any more to make the save anew."""
    return is_whole(save) and os.path.lexists(f"{save}/{FINAL}")


def read_manifest(save: str) -> Manifest:
    """What the save holds; CannotRestore if it is not whole, or of a later version."""
    try:
        said = json.loads(read_regular(f"{save}/{MANIFEST}", limit=MANIFEST_MAX))
        if said.pop("version") != VERSION:
            raise CannotRestore(f"{save} was saved by a later version of tmuxorch; update it")
        check_fields(said)
        said["kept"] = tuple((path, mode, size) for path, mode, size in said["kept"])
        said["inner"] = tuple((p, own, head, on) for p, own, head, on in said.get("inner", ()))
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in said.items()
        }
        return Manifest(**values)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CannotRestore(f"the save {save} is not whole: {error}") from None


def _sync(directory: str) -> None:
    file = os.open(directory, DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


# -- copies -------------------------------------------------------------------------------


def copy_entries(source: str, target: str, entries: Iterable[tuple[str, int]]) -> list[str]:
    """Copy `(path, mode)` from one directory into another, over what is there.

    Links are copied, never followed, neither at the end of a path nor on the way. Returns what
    cannot be copied: sockets and devices. Raises OSError.
    """
    left, directories = [], []
    with Tree(source) as old, Tree(target) as new:
        for path, mode in entries:
            parent, _, name = path.rpartition("/")
            to = new.open(parent, make=True)
            if stat.S_ISDIR(mode):
                make_directory(to, name)
                directories.append((path, mode))
                continue
            clear(to, name)
            if stat.S_ISREG(mode):
                _copy_file(old.open(parent), to, name, mode)
            elif stat.S_ISLNK(mode):
                os.symlink(os.readlink(name, dir_fd=old.open(parent)), name, dir_fd=to)
            elif stat.S_ISFIFO(mode):
                os.mkfifo(name, stat.S_IMODE(mode) & ~DANGEROUS, dir_fd=to)
            else:
                left.append(path)
        # Last, and the deepest first: one that forbids writing is closed once it is full.
        for path, mode in reversed(directories):
            parent, _, name = path.rpartition("/")
            # One that hands its group on is as harmless as any; the system may refuse us that.
            os.chmod(name, stat.S_IMODE(mode) & ~stat.S_ISUID, dir_fd=new.open(parent))
    return left


def copy_tree(source: str, target: str, *, skip: Iterable[str] = (), link: str = "") -> None:
    """Copy all below `source` but top names in `skip`; files below a directory `link` are linked.

    What git keeps there under the name of its bytes never changes, so that one file will do.
    """
    skipped = set(skip)
    linked: list[str] = []
    entries = []
    for found in walk(source):
        if found.path.partition("/")[0] in skipped or found.path.endswith(".lock"):
            continue
        if link and f"/{link}/" in f"/{found.path}" and stat.S_ISREG(found.stat.st_mode):
            linked.append(found.path)
        else:
            entries.append((found.path, found.stat.st_mode))
    os.makedirs(target, mode=0o700, exist_ok=True)
    copy_entries(source, target, entries)
    for path in linked:
        try:
            os.link(f"{source}/{path}", f"{target}/{path}", follow_symlinks=False)
        except OSError:
            shutil.copy2(f"{source}/{path}", f"{target}/{path}", follow_symlinks=False)


class Tree:
    """Directories below a top, opened one name at a time so that no link is followed."""

    def __init__(self, top: str) -> None:
        self._top = os.open(top, DIRECTORY)
        self._path, self._fd = "", self._top

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        os.close(self._top)

    def _leave(self) -> None:
        if self._fd != self._top:
            os.close(self._fd)
        self._path, self._fd = "", self._top

    def open(self, path: str, *, make: bool = False) -> int:
        """The directory `path`, open until the next one is asked for; made if wanted."""
        if path == self._path:
            return self._fd
        rest = path
        if self._path and path.startswith(f"{self._path}/"):
            rest = path[len(self._path) + 1 :]
        else:
            self._leave()
        for name in rest.split("/") if rest else ():
            if make:
                make_directory(self._fd, name)
            inner = os.open(name, DIRECTORY, dir_fd=self._fd)
            if self._fd != self._top:
                os.close(self._fd)
            self._fd = inner
        self._path = path
        return self._fd


def make_directory(parent: int, name: str) -> None:
    """Make it, or make it writable, in the place of anything else of that name."""
    try:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=parent)
        return
    if not stat.S_ISDIR(facts.st_mode):
        os.unlink(name, dir_fd=parent)
        os.mkdir(name, dir_fd=parent)
    elif facts.st_mode & 0o700 != 0o700:
        os.chmod(name, stat.S_IMODE(facts.st_mode) | 0o700, dir_fd=parent)


def clear(parent: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except IsADirectoryError:
        os.rmdir(name, dir_fd=parent)


def _copy_file(source: int, target: int, name: str, mode: int) -> None:
    with open(_open_readable(name, source), "rb") as old:
        facts = os.fstat(old.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is not the file that was saved", name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o600, dir_fd=target), "wb") as new:
            shutil.copyfileobj(old, new, 1 << 20)
            new.flush()
            _copy_attributes(old.fileno(), new.fileno())
            os.fchmod(new.fileno(), stat.S_IMODE(mode) & ~DANGEROUS)
            os.utime(new.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _copy_attributes(source: int, target: int) -> None:
    """A person's own extended attributes, where the file system takes them."""
    if sys.platform != "linux":
        return
    with suppress(OSError):
        for name in os.listxattr(source):
            if name.startswith("user."):
                os.setxattr(target, name, os.getxattr(source, name))


def _open_readable(name: str, parent: int) -> int:
    """Open a file of ours, also one that nobody is allowed to read."""
    try:
        return os.open(name, PLAIN, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o600, dir_fd=parent)
        return os.open(name, PLAIN, dir_fd=parent)


def _size(path: str) -> int | None:
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


def observe_missing(
    save: str, manifest: Manifest, top: str, *, besides: Iterable[str] = ()
) -> Iterator[str]:
    """What of the kept paths is not at `top` as it was: of that type, those permissions and size.

    `besides` are paths that nothing brings back.
    """
    passed = set(besides)
    # Where this user may not look, nothing is missing for all that can be told.
    hidden = tuple(f"{p}/" for p, m, _ in manifest.kept if stat.S_ISDIR(m) and m & 0o500 != 0o500)
    there = {found.path: found.stat for found in walk(top)}
    for path, mode, size in manifest.kept:
        if path in passed or stat.S_ISSOCK(mode) or (path not in there and path.startswith(hidden)):
            continue
        facts = there.get(path)
        same = facts is not None and facts.st_mode & ~DANGEROUS == mode & ~DANGEROUS
        if same and stat.S_ISREG(mode):
            # One that was still written to when it was saved may have grown since.
            same = facts.st_size in (size, _size(f"{save}/files/{path}"))  # type: ignore[union-attr]
        if not same:
            yield path
