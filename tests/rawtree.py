"""A worktree as it lies on the disk: every path with its kind, mode and bytes, and git's part.

The walk believes nothing that git says about the files, so that it can judge what git misses.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Kind, mode and content: bytes up to a size, a digest beyond it.
Entry = tuple[str, int, bytes]
Skip = Callable[[bytes], bool]
SMALL = 4096
UNDER_WAY = {"rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "CHERRY_PICK_HEAD"}


@dataclass(frozen=True)
class GitPart:
    """What a repository or worktree holds beside its files.

    `needed` are the objects that must not go: of a worktree those that its index and its
    reflog name, of a nested repository all. `objects` are all that the repository has.
    """

    index: bytes
    head: bytes
    under_way: tuple[str, ...]
    needed: frozenset[bytes] = field(repr=False)
    objects: frozenset[bytes] = field(repr=False, compare=False)


@dataclass(frozen=True)
class RawTree:
    """All of a worktree; `nested` are the repositories below it by their paths."""

    files: Mapping[bytes, Entry]
    own: GitPart | None
    nested: Mapping[bytes, GitPart]


def read_tree(top: Path | str, environ: Mapping[str, str], skip: Skip = lambda _: False) -> RawTree:
    """Look at everything below `top`; paths for which `skip` says so are left out."""
    root = os.fsencode(top)
    files, homes = walk(root, skip)
    nested = {home: read_nested(os.path.join(root, home), environ) for home in homes}
    return RawTree(files, read_own(root, environ), nested)


def walk(root: bytes, skip: Skip = lambda _: False) -> tuple[dict[bytes, Entry], list[bytes]]:
    """Every entry below `root` by its relative path, and where nested repositories are.

    Of a nested repository its index and its objects are left out: git may write the one anew
    and pack the others; `read_nested` looks at what they say.
    """
    found: dict[bytes, Entry] = {}
    homes: list[bytes] = []
    todo = [b""]
    while todo:
        below = todo.pop()
        repository = os.path.basename(below) == b".git" and _is_repository(root, below)
        if repository:
            homes.append(os.path.dirname(below))
        for entry in os.scandir(os.path.join(root, below)):
            name = os.path.join(below, entry.name)
            if name == b".git" or skip(name):
                continue
            if repository and entry.name in (b"index", b"objects"):
                continue
            found[name] = _look(entry)
            if entry.is_dir(follow_symlinks=False):
                todo.append(name)
    return found, sorted(homes)


def _is_repository(root: bytes, below: bytes) -> bool:
    path = os.path.join(root, below)
    return os.path.isfile(os.path.join(path, b"HEAD")) and os.path.isdir(
        os.path.join(path, b"objects")
    )


def _look(entry: os.DirEntry[bytes]) -> Entry:
    mode = entry.stat(follow_symlinks=False).st_mode
    bits = stat.S_IMODE(mode)
    if stat.S_ISLNK(mode):
        return "link", 0, os.readlink(entry.path)
    if stat.S_ISDIR(mode):
        return "directory", bits, b""
    if not stat.S_ISREG(mode):
        return f"special {stat.S_IFMT(mode):o}", bits, b""
    with open(entry.path, "rb") as file:
        data = file.read()
    return "file", bits, data if len(data) <= SMALL else hashlib.sha256(data).digest()


def read_own(root: bytes, environ: Mapping[str, str]) -> GitPart | None:
    """Index, HEAD and reflog of the worktree itself; None where there is none."""
    if not os.path.lexists(os.path.join(root, b".git")):
        return None
    return _read(root, environ, is_nested=False)


def read_nested(root: bytes, environ: Mapping[str, str]) -> GitPart:
    """Index, HEAD and every object of a repository inside a worktree."""
    return _read(root, environ, is_nested=True)


def _read(root: bytes, environ: Mapping[str, str], *, is_nested: bool) -> GitPart:
    home, *commit = _git(root, environ, "rev-parse", "--absolute-git-dir", "HEAD").splitlines()
    names = {os.fsdecode(name) for name in os.listdir(home)}
    attached = Path(os.fsdecode(home), "HEAD").read_bytes().startswith(b"ref:")
    index = _git(root, environ, "ls-files", "-z", "-s", "-v")
    every = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    objects = needed = frozenset(_git(root, environ, *every).split())
    if not is_nested:
        named = set(_git(root, environ, "log", "-g", "--format=%H", "HEAD").split())
        lines = [line.split() for line in index.split(b"\0") if line]
        needed &= named | {line[2] for line in lines if line[1] != b"160000"}
    return GitPart(
        index=index,
        head=b" ".join([b"branch" if attached else b"detached", *commit]),
        under_way=tuple(sorted(names & UNDER_WAY)),
        needed=needed,
        objects=objects,
    )


def _git(root: bytes, environ: Mapping[str, str], *args: str) -> bytes:
    argv = [b"git", b"-C", root, *(arg.encode() for arg in args)]
    done = subprocess.run(
        argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.stdout


def differences(before: RawTree, after: RawTree, extra: Skip = lambda _: False) -> Iterator[str]:
    """What of `before` is not the same in `after`, and what is new there unless `extra` has it."""
    for name, entry in before.files.items():
        found = after.files.get(name)
        if found is None:
            yield f"{name!r} is missing; it was {entry}"
        elif found != entry:
            yield f"{name!r} was {entry} and is {found}"
    for name in after.files.keys() - before.files.keys():
        if not extra(name):
            yield f"{name!r} is new: {after.files[name]}"
    if before.own is not None:
        yield from _part_differences("the worktree", before.own, after.own)
    for name, part in before.nested.items():
        yield from _part_differences(f"the repository in {name!r}", part, after.nested.get(name))


def _part_differences(what: str, before: GitPart, after: GitPart | None) -> Iterator[str]:
    if after is None:
        yield f"{what} is no repository any more"
        return
    if before.index != after.index:
        yield f"the index of {what} was {before.index!r} and is {after.index!r}"
    if before.head != after.head:
        yield f"HEAD of {what} was {before.head!r} and is {after.head!r}"
    if before.under_way != after.under_way:
        yield f"under way in {what} was {before.under_way} and is {after.under_way}"
    if lost := before.needed - after.objects:
        yield f"{len(lost)} objects of {what} are gone: {sorted(lost)[:3]}"
