"""Saves of the first kind: a snapshot commit under a ref, and a tar of what git does not keep.

The tree of a snapshot is the worktree's files. Its message has one line of JSON, `Facts`; its
parents are the commits that went with the worktree, and two that hold what was staged.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.checkout import Checkout
from tmuxorch.adapters.git.survey import hash_file
from tmuxorch.adapters.store.saves import DANGEROUS, Tree, clear, make_directory
from tmuxorch.adapters.system.treewalk import walk
from tmuxorch.errors import CannotSave, GitFailed, sure

TITLE = "tmuxorch: files"
READ_S = 3600.0
BATCH_BYTES = 1 << 26
LINK, SUBMODULE, NOTHING = "120000", "160000", "000000"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a snapshot's message says; `head` is None before the first commit.

    `branch` is what HEAD was on, None if detached. `staged` is a commit of the index's tree,
    `conflicts` one of its unmerged entries, each as `<stage>/<path>`. `assumed`, `skipped` and
    `intended` are flags of the index, `modes` permissions that git does not keep. `tip` is
    where the agent's branch was, `path` where a nested repository was.
    """

    head: str | None
    branch: str | None
    staged: str
    conflicts: str | None = None
    unfiltered: tuple[str, ...] = ()
    empty_directories: tuple[str, ...] = ()
    tip: str | None = None
    path: str = ""
    assumed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    intended: tuple[str, ...] = ()
    modes: Mapping[str, int] = field(default_factory=dict)


def read_facts(directory: str, commit: str) -> Facts:
    """What the snapshot says; GitFailed if it is none."""
    facts, _ = _read(directory, commit)
    if facts is None:
        raise GitFailed(f"{commit} in {directory} is no snapshot of tmuxorch")
    return facts


def _read(directory: str, commit: str) -> tuple[Facts | None, list[str]]:
    text = git(directory, "cat-file", "commit", commit).stdout.decode(errors="surrogateescape")
    header, _, message = text.partition("\n\n")
    parents = [line[7:] for line in header.splitlines() if line.startswith("parent ")]
    if not message.startswith(f"{TITLE}\n"):
        return None, parents
    try:
        said = json.loads(message.rstrip("\n").rpartition("\n")[2])
        lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
        return Facts(**said | lists), parents
    except (ValueError, TypeError, AttributeError):
        return None, parents


def observe_committed(directory: str, commit: str) -> list[str]:
    """The commits of people's own that a snapshot holds, through earlier ones it holds too."""
    found: dict[str, None] = {}
    pending, seen = [commit], set()
    while pending:
        oid = pending.pop()
        facts, parents = _read(directory, oid)
        if facts is None:
            found[oid] = None
        elif oid not in seen:
            seen.add(oid)
            pending += [p for p in parents if p not in (facts.staged, facts.conflicts)]
    return list(found)


class Change(NamedTuple):
    """A file of a snapshot that its commit has otherwise, or not at all."""

    path: str
    mode: str
    oid: str


def observe_changes(
    directory: str, commit: str, head: str | None
) -> tuple[list[Change], frozenset[str]]:
    """What the snapshot has otherwise than the commit `head`, and what it lacks of it."""
    base = head or git(directory, "hash-object", "-t", "tree", "--stdin", stdin=b"").stdout.decode()
    asked = ("diff-tree", "-r", "-z", "--no-renames", base.strip(), commit)
    words = iter(os.fsdecode(git(directory, *asked).stdout).split("\0")[:-1])
    changes, gone = [], set()
    for about, path in zip(words, words, strict=True):
        was, mode, _, oid, _ = about.removeprefix(":").split(" ")
        if mode not in (NOTHING, SUBMODULE):
            changes.append(Change(path, mode, oid))
        elif was not in (NOTHING, SUBMODULE):
            gone.add(path)
    return changes, frozenset(gone)


def list_tree(directory: str, tree: str) -> Iterator[tuple[str, str, str]]:
    """Mode, object and path of every file in a tree."""
    answer = os.fsdecode(git(directory, "ls-tree", "-r", "-z", "--full-tree", tree).stdout)
    for record in answer.split("\0")[:-1]:
        about, _, path = record.partition("\t")
        mode, _, oid = about.split(" ")
        yield mode, oid, path


def make_index(checkout: Checkout, facts: Facts) -> None:
    """The index as it was. It names no trees: those of what was staged are nobody's to keep."""
    lines = [
        f"{mode} {oid} 0\t{path}\0" for mode, oid, path in list_tree(checkout.own, facts.staged)
    ]
    for mode, oid, name in list_tree(checkout.own, facts.conflicts) if facts.conflicts else ():
        stage, _, path = name.partition("/")
        lines.append(f"{mode} {oid} {stage}\t{path}\0")
    plain = ("-c", "core.splitIndex=false", "update-index", "-z")
    checkout.ask(*plain, "--index-info", stdin=os.fsencode("".join(lines)))
    flags = (("--assume-unchanged", facts.assumed), ("--skip-worktree", facts.skipped))
    for option, paths in flags:
        if paths:
            names = os.fsencode("".join(f"{path}\0" for path in paths))
            checkout.ask(*plain, option, "--stdin", stdin=names)
    intended = [path for path in facts.intended if os.path.lexists(f"{checkout.top}/{path}")]
    if intended:
        names = os.fsencode("".join(f":(literal){path}\0" for path in intended))
        named = ("--pathspec-from-file=-", "--pathspec-file-nul")
        checkout.ask(*plain[:2], "add", "--force", "-N", *named, stdin=names)


class Filling:
    """A directory that is filled from an old save, and what it has to hold then.

    Links are made and never followed, and nothing is written outside of `top`. Permissions are
    noted in `modes`, for a restore to give: here all is readable for its owner alone.
    """

    def __init__(self, top: str) -> None:
        self.top = top
        self.modes: dict[str, int] = {}
        self._hashes: dict[str, str] = {}
        os.umask(mask := os.umask(0o077))
        self.usual = 0o666 & ~mask

    def write_blobs(
        self, directory: str, changes: Iterable[Change], modes: Mapping[str, int], below: str = ""
    ) -> None:
        """Write files as the very bytes of their objects, with no conversion of git's."""
        wanted = {_checked(f"{below}{c.path}", barred=True): c for c in changes}
        places: dict[str, list[str]] = {}
        for path, change in wanted.items():
            places.setdefault(change.oid, []).append(path)
        for oid, data in _read_blobs(directory, places):
            for path in places[oid]:
                change = wanted[path]
                if change.mode == LINK:
                    self._link(path, data)
                else:
                    self._write(path, [data])
                    runs = (self.usual & 0o444) >> 2 if change.mode == "100755" else 0
                    self.modes[path] = modes.get(change.path, self.usual | runs) & ~DANGEROUS
                self._hashes[path] = oid

    def make_directories(self, paths: Iterable[str]) -> None:
        with Tree(self.top) as tree:
            for path in paths:
                tree.open(_checked(path, barred=True), make=True)

    def unpack(self, archive: str, name: str, *, barred: Iterable[str]) -> list[str]:
        """Write what is below `name` in the tar over what is there; returns devices, left out.

        CannotSave if it names a place outside, or one of `barred` at the top.
        """
        left = []
        with tarfile.open(archive) as tar:
            for member in tar:
                if not member.name.startswith(f"{name}/"):
                    continue
                path = _checked(member.name.removeprefix(f"{name}/"))
                if path.partition("/")[0] in {*barred} or member.islnk():
                    raise CannotSave(f"{archive} has {member.name}, which no save puts there")
                if member.isdev() and not member.isfifo():
                    left.append(path)
                else:
                    self._unpack(tar, member, path)
        return left

    def _unpack(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        parent, _, name = path.rpartition("/")
        if member.issym():
            self._link(path, os.fsencode(member.linkname))
            return
        self.modes[path] = stat.S_IMODE(member.mode) & ~DANGEROUS
        if member.isreg():
            data = sure(tar.extractfile(member), "a file of an archive has bytes")
            self._hashes[path] = self._write(path, _chunks(data), member.size)
            return
        self._hashes.pop(path, None)
        with Tree(self.top) as tree:
            to = tree.open(parent, make=True)
            if member.isdir():
                make_directory(to, name)
            else:
                clear(to, name)
                os.mkfifo(name, 0o600, dir_fd=to)

    def _write(self, path: str, chunks: Iterable[bytes], size: int = 0) -> str:
        parent, _, name = path.rpartition("/")
        digest = hashlib.sha1(b"blob %d\0" % size)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with Tree(self.top) as tree:
            to = tree.open(parent, make=True)
            clear(to, name)
            with open(os.open(name, flags, 0o600, dir_fd=to), "wb") as file:
                for chunk in chunks:
                    digest.update(chunk)
                    file.write(chunk)
        return digest.hexdigest()

    def _link(self, path: str, target: bytes) -> None:
        parent, _, name = path.rpartition("/")
        with Tree(self.top) as tree:
            to = tree.open(parent, make=True)
            clear(to, name)
            os.symlink(os.fsdecode(target), name, dir_fd=to)
        self.modes.pop(path, None)
        self._hashes[path] = hashlib.sha1(b"blob %d\0" % len(target) + target).hexdigest()

    def check(self) -> None:
        """Read all of it back; CannotSave names what is not as it was written."""
        for path, oid in self._hashes.items():
            full = f"{self.top}/{path}"
            with suppress(FileNotFoundError):
                if hash_file(full, os.lstat(full), oid) == oid:
                    continue
            raise CannotSave(f"{full} does not hold what was written to it")

    def list_kept(self) -> list[tuple[str, int, int]]:
        """Path, mode and size of all that is there but directories that come by themselves."""
        kept = []
        for path, facts, entries in walk(self.top):
            if path in self.modes or entries == 0:
                mode = stat.S_IFMT(facts.st_mode) | self.modes.get(
                    path, stat.S_IMODE(facts.st_mode)
                )
                kept.append((path, mode, facts.st_size))
        return sorted(kept)


def _checked(path: str, *, barred: bool = False) -> str:
    """The path, if it leads to a place below; `barred` if no `.git` may be on the way."""
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or (barred and ".git" in parts):
        raise CannotSave(f"the save names {path!r}, which is no place for a file of it")
    return path


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(1 << 20):
        yield chunk


def _read_blobs(directory: str, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Objects with their bytes, as many at a time as are no burden for the memory."""
    names = "".join(f"{oid}\n" for oid in oids).encode()
    asked = ("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
    batch: list[str] = []
    total = 0
    for line in [*git(directory, *asked, stdin=names).stdout.decode().splitlines(), ""]:
        oid, _, about = line.partition(" ")
        if line and not about.startswith("blob "):
            raise CannotSave(f"the file {oid} of the save is not in {directory} any more")
        if batch and (not line or total > BATCH_BYTES):
            yield from _read_batch(directory, batch)
            batch, total = [], 0
        if line:
            batch.append(oid)
            total += int(about[5:])


def _read_batch(directory: str, oids: list[str]) -> Iterator[tuple[str, bytes]]:
    names = "".join(f"{oid}\n" for oid in oids).encode()
    data = git(directory, "cat-file", "--batch", stdin=names, timeout_s=READ_S).stdout
    at = 0
    for oid in oids:
        end = data.index(b"\n", at)
        size = int(data[at:end].split(b" ")[2])
        yield oid, data[end + 1 : end + 1 + size]
        at = end + size + 2
