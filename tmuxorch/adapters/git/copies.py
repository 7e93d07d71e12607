"""Files that git does not carry into a new worktree: copied there from the main one.

Links are copied, not followed; no walk recurses, and all of it has one deadline.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from tmuxorch.errors import SetupFailed

COPY_S = 600.0
ENTRIES_MAX = 1_000_000
_CHUNK = 1 << 20
_KINDS = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket"}


def copy_into_worktree(
    repo_root: str,
    worktree: str,
    patterns: Sequence[str],
    *,
    timeout_s: float = COPY_S,
    on_skip: Callable[[str], None] = lambda _: None,
) -> tuple[str, ...]:
    """Copy what the globs name (`.env`, `config/*.local`, whole directories) with its mode.

    Returns the relative paths copied. What exists in the worktree stays as it is; `.git`,
    nested repositories and other worktrees are passed over, FIFOs, sockets and devices are told
    to `on_skip`. A pattern or link that leads out of the repository raises SetupFailed.
    """
    root, target = os.path.realpath(repo_root), os.path.realpath(worktree)
    walk = _Walk(root, time.monotonic() + timeout_s)
    copied = []
    try:
        names = {name for pattern in patterns for name in walk.matches(pattern)}
        for name in sorted(names):
            source, copy = os.path.join(root, name), os.path.join(target, name)
            if not _is_inside(source, root) or not _is_inside(os.path.dirname(copy), target):
                raise SetupFailed(f"{name} was not copied: it leads out of {repo_root}")
            if os.path.lexists(copy) or _is_inside(source, target):
                continue
            _make_directories(target, name)
            if kind := _copy(source, copy, walk.check_time):
                on_skip(f"{name} was not copied: it is a {kind}")
            else:
                copied.append(name)
    except OSError as error:
        where = os.fsdecode(error.filename or "")[:200]
        raise SetupFailed(f"{where} was not copied: {error.strerror or error}") from error
    return tuple(copied)


def as_patterns(paths: Sequence[str]) -> list[str]:
    """Patterns that mean exactly these paths."""
    import glob  # here: 4 ms that most agents do not need

    return [glob.escape(path) for path in paths]


class _Walk:
    """Finds what patterns mean below `root`, with a bound on entries and time."""

    def __init__(self, root: str, deadline: float) -> None:
        self._root = root
        self._deadline = deadline
        self._left = ENTRIES_MAX

    def check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise SetupFailed("setup.copy did not end within setup.timeout_s; name fewer files")

    def matches(self, pattern: str) -> Iterator[str]:
        """Files and links that the pattern names, or that are below a directory it names."""
        if os.path.isabs(pattern) or ".." in pattern.split("/") or not pattern.strip("/."):
            raise SetupFailed(f"cannot copy {pattern!r}: give a path or glob inside the repository")
        import fnmatch  # as above

        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        todo, seen = [("", 0)], set()
        while todo:
            name, index = step = todo.pop()
            if step in seen:
                continue
            seen.add(step)
            self._spend()
            if index == len(parts):
                if name and not _is_in_another_repo(self._root, name):
                    yield from self._files(name)
                continue
            part = parts[index]
            if part == "**":
                todo.append((name, index + 1))
                below = (e for e in self._entries(name) if e.is_dir(follow_symlinks=False))
                todo += ((_below(name, e.name), index) for e in below if e.name != ".git")
            elif not set(part) & set("*?["):
                if os.path.lexists(os.path.join(self._root, name, part)):
                    todo.append((_below(name, part), index + 1))
            else:
                fitting = (e for e in self._entries(name) if fnmatch.fnmatchcase(e.name, part))
                is_last = index + 1 == len(parts)
                todo += (
                    (_below(name, e.name), index + 1)
                    for e in fitting
                    if is_last or e.is_dir(follow_symlinks=False)
                )

    def _files(self, name: str) -> Iterator[str]:
        todo = [name]
        while todo:
            name = todo.pop()
            self._spend()
            path = os.path.join(self._root, name)
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                yield name
            elif not os.path.lexists(os.path.join(path, ".git")):
                todo += (_below(name, entry.name) for entry in self._entries(name))

    def _entries(self, name: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self._root, name)) as entries:
                return list(entries)
        except (NotADirectoryError, FileNotFoundError):
            return []

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise SetupFailed(f"setup.copy names more than {ENTRIES_MAX} files; name fewer")
        self.check_time()


def _below(name: str, entry: str) -> str:
    return f"{name}/{entry}" if name else entry


def _make_directories(top: str, name: str) -> None:
    """Those above `name`; not by `makedirs`, which recurses."""
    above, _, _ = name.rpartition("/")
    if not above or os.path.isdir(os.path.join(top, above)):
        return
    path = top
    for part in above.split("/"):
        path = os.path.join(path, part)
        with suppress(FileExistsError):
            os.mkdir(path)


def _copy(source: str, copy: str, check_time: Callable[[], None]) -> str:
    """Copy one link or regular file; of anything else, what it is."""
    import shutil  # as above

    mode = os.lstat(source).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), copy)
    elif stat.S_ISREG(mode):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(source, flags), "rb") as data, open(copy, "xb") as file:
            while chunk := data.read(_CHUNK):
                check_time()
                file.write(chunk)
    else:
        return _KINDS.get(stat.S_IFMT(mode), "device")
    shutil.copystat(source, copy, follow_symlinks=False)
    return ""


def _is_in_another_repo(root: str, name: str) -> bool:
    """Whether a directory on the way to `name` has a `.git`, or is one."""
    parts = name.split("/")
    above = ("/".join(parts[:end]) for end in range(1, len(parts)))
    return ".git" in parts or any(os.path.lexists(f"{root}/{part}/.git") for part in above)


def _is_inside(path: str, top: str) -> bool:
    return os.path.realpath(path).startswith(top + os.sep) or os.path.realpath(path) == top
