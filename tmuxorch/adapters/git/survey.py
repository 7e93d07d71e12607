"""Every file of a checkout against its commit, byte for byte: what a fresh one would lack.

The directory is walked once. A file that git itself compared, and whose times, inode and size
are still those that git noted, is as git says; all others are read. Where attributes or
settings let git store or write other bytes than a file has, its word is not taken at all.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from tmuxorch.adapters.git.checkout import STAGED, Checkout, list_staged
from tmuxorch.adapters.git.index_file import Index, IndexEntry, Unreadable, read_index
from tmuxorch.adapters.system.treewalk import SEALED, Found, walk

LINK, SUBMODULE = 0o120000, 0o160000
KEEPING = re.compile(rb"text|eol|crlf|filter|ident|working-tree-encoding|\[attr\]")
WRITING = re.compile(rb"eol|crlf|filter|ident|working-tree-encoding|\[attr\]")
ATTRIBUTES = ".gitattributes"
ATTRIBUTES_MAX = 1 << 20
TEMPORARY = "tmuxorch-"
READ_S = 3600.0


@dataclass(frozen=True, slots=True)
class Survey:
    """What a fresh checkout of the commit would have wrong.

    `same` are files with the very bytes of the commit and the usual permissions; `kept` is all
    else that is there: files, links, and directories that are empty or have permissions of
    their own. `changed` are files of the commit that a checkout would write otherwise,
    `untouched` those of them that a filter explains and that are as they were when the worktree
    was made; `gone` are those that are not there. `nested`
    are directories with a `.git`, `special` FIFOs, sockets and devices, `sealed` directories
    that could not be read, `moved` submodules at another commit in the index. `times` tells of
    everything when it last changed, by a clock that nobody can set. `usual` are the permissions
    of a plain file.
    """

    kept: Mapping[str, os.stat_result] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    untouched: frozenset[str] = frozenset()
    same: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    sealed: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    times: Mapping[str, int] = field(default_factory=dict)
    index: Index = field(default_factory=Index)
    usual: int = 0o644


def survey(
    checkout: Checkout,
    commit: str | None,
    *,
    index: Index | None = None,
    scratch: str | None = None,
) -> Survey:
    """Walk the directory and compare; GitFailed if git cannot say what the commit has.

    `index` stands in for the checkout's own where that one is not to be had. In `scratch` files
    may be written for a moment, by default in git's directory.
    """
    index = index or observe_index(checkout, commit)
    blobs = observe_blobs(checkout, commit, index)
    usual, made_ns = _usual(checkout.top)
    seen = _Seen()
    times = _walk(checkout.top, seen, blobs, index, usual)
    doubted = seen.doubted
    converting = _observe_converting(checkout, seen, index)
    if converting:
        doubted, seen.same = [*doubted, *seen.same], []
    for found in doubted:
        oid = blobs[found.path].oid
        if hash_file(f"{checkout.top}/{found.path}", found.stat, oid) == oid:
            seen.same.append(found)
        else:
            seen.kept[found.path] = found.stat
            seen.changed.append(found.path)
    filtered: set[str] = set()
    if Conversion.WRITING in converting and commit is not None:
        there = {**{f.path: f.stat for f in seen.same}, **{p: seen.kept[p] for p in seen.changed}}
        tracked = [path for path, facts in there.items() if stat.S_ISREG(facts.st_mode)]
        names, filtered = _written_otherwise(checkout, tracked)
        seen.changed = _changed(checkout, commit, names, seen, scratch or checkout.own)
    same = tuple(found.path for found in seen.same)
    known = seen.kept.keys() | set(same)
    return Survey(
        kept=seen.kept,
        changed=frozenset(seen.changed),
        untouched=frozenset(
            p for p in seen.changed if p in filtered and seen.kept[p].st_ctime_ns < made_ns
        ),
        same=same,
        gone=tuple(p for p, b in blobs.items() if p not in known and b.mode != SUBMODULE),
        nested=tuple(sorted(seen.nested)),
        special=tuple(seen.special),
        sealed=frozenset(seen.sealed),
        moved=frozenset(_moved(index, blobs)),
        times=times,
        index=index,
        usual=usual,
    )


@dataclass(slots=True)
class _Seen:
    """What a walk has found so far; `doubted` are files that have to be read."""

    kept: dict[str, os.stat_result] = field(default_factory=dict)
    same: list[Found] = field(default_factory=list)
    doubted: list[Found] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    nested: set[str] = field(default_factory=set)
    special: list[str] = field(default_factory=list)
    sealed: list[str] = field(default_factory=list)


def _walk(
    top: str, seen: _Seen, blobs: Mapping[str, IndexEntry], index: Index, usual: int
) -> dict[str, int]:
    """Sort everything below the directory into `seen`; the times at which each was changed."""
    modes = _modes(usual)
    times: dict[str, int] = {}
    for found in walk(top):
        path, facts, _ = found
        times[path] = facts.st_ctime_ns
        blob = blobs.get(path)
        if blob is not None and modes.get(blob.mode) == facts.st_mode:
            as_noted = _is_as_noted(facts, index.entries.get(path), blob, index.at_ns)
            (seen.same if as_noted else seen.doubted).append(found)
        elif stat.S_ISDIR(facts.st_mode):
            _sort_directory(seen, found, usual)
        elif path != ".git" or not stat.S_ISREG(facts.st_mode):
            _sort_file(seen, found, known=blob is not None)
    return times


def _sort_directory(seen: _Seen, found: Found, usual: int) -> None:
    if found.path.endswith("/.git"):
        seen.nested.add(found.path[:-5])
    if found.entries == SEALED:
        seen.sealed.append(found.path)
    if found.entries <= 0 or stat.S_IMODE(found.stat.st_mode) != usual | (usual & 0o444) >> 2:
        seen.kept[found.path] = found.stat


def _sort_file(seen: _Seen, found: Found, *, known: bool) -> None:
    """One that is new, or of another type or mode than in the commit."""
    if found.path.endswith("/.git"):
        seen.nested.add(found.path[:-5])
    seen.kept[found.path] = found.stat
    if stat.S_IFMT(found.stat.st_mode) not in (stat.S_IFREG, stat.S_IFLNK):
        seen.special.append(found.path)
    elif known:
        seen.changed.append(found.path)


def observe_index(checkout: Checkout, commit: str | None) -> Index:
    try:
        return read_index(f"{checkout.own}/index", len(commit or "0" * 40) // 2)
    except Unreadable:
        pass
    entries: dict[str, IndexEntry] = {}
    conflicts = []
    answer = os.fsdecode(checkout.ask("ls-files", "-z", "-s", "-v").stdout)
    for record in answer.split("\0")[:-1]:
        about, _, path = record.partition("\t")
        tag, mode, oid, stage = about.split(" ")
        skipped, assumed = tag in "Ss", tag.islower()
        entry = IndexEntry(int(mode, 8), oid, int(stage), skipped=skipped, assumed=assumed)
        if entry.stage:
            conflicts.append((path, entry))
        else:
            entries[path] = entry
    return Index(entries, tuple(conflicts))


def observe_blobs(checkout: Checkout, commit: str | None, index: Index) -> dict[str, IndexEntry]:
    """The files of the commit by path: the index's, but for what git says differs."""
    if commit is None:
        return {}
    if not index.entries or index.conflicts:
        return dict(_list_tree(checkout, commit))
    answer = checkout.ask(*STAGED, commit).stdout
    if not answer:
        return index.entries
    blobs = dict(index.entries)
    for file in list_staged(answer):
        mode, oid = file.was
        blobs.pop(file.path, None)
        if mode != "000000":
            blobs[file.path] = IndexEntry(int(mode, 8), oid)
    return blobs


def _moved(index: Index, blobs: Mapping[str, IndexEntry]) -> Iterator[str]:
    if blobs is index.entries:
        return
    for path, entry in index.entries.items():
        if entry.mode == SUBMODULE and (path not in blobs or blobs[path].oid != entry.oid):
            yield path


def _list_tree(checkout: Checkout, commit: str) -> Iterator[tuple[str, IndexEntry]]:
    answer = os.fsdecode(checkout.ask("ls-tree", "-r", "-z", "--full-tree", commit).stdout)
    for record in answer.split("\0")[:-1]:
        about, _, path = record.partition("\t")
        mode, kind, oid = about.split(" ")
        if kind != "tree":
            yield path, IndexEntry(int(mode, 8), oid)


def _usual(top: str) -> tuple[int, int]:
    """The permissions git gave plain files here, and when the worktree was made.

    Both off the `.git` that git wrote along with them, and that was touched when all was done.
    """
    try:
        facts = os.lstat(f"{top}/.git")
    except OSError:
        facts = None
    if facts is None or not stat.S_ISREG(facts.st_mode):
        os.umask(mask := os.umask(0o077))
        return 0o666 & ~mask, 0
    return stat.S_IMODE(facts.st_mode) & 0o666, facts.st_ctime_ns


def _modes(usual: int) -> dict[int, int]:
    """The type and permissions that a checkout gives, by the mode that git keeps."""
    return {
        0o100644: stat.S_IFREG | usual,
        0o100755: stat.S_IFREG | usual | (usual & 0o444) >> 2,
        LINK: stat.S_IFLNK | 0o777,
    }


def _is_as_noted(
    facts: os.stat_result, entry: IndexEntry | None, blob: IndexEntry, at_ns: int
) -> bool:
    """Whether git compared this very file, before the index was written, and found the blob."""
    return (
        entry is not None
        and entry.oid == blob.oid
        and entry.marks
        == (
            facts.st_ctime_ns,
            facts.st_mtime_ns,
            facts.st_ino & 0xFFFFFFFF,
            facts.st_size & 0xFFFFFFFF,
        )
        and facts.st_mtime_ns < at_ns
        and facts.st_ctime_ns < at_ns
    )


class Conversion(Enum):
    """What git may be set to do: keep other bytes than a file has, write others than it kept."""

    KEEPING = auto()
    WRITING = auto()


def _observe_converting(checkout: Checkout, seen: _Seen, index: Index) -> set[Conversion]:
    found = set()
    if checkout.line_ends != "false":
        found.add(Conversion.KEEPING)
    if checkout.line_ends == "true":
        found.add(Conversion.WRITING)
    inside = {path for path in index.entries if path.endswith(ATTRIBUTES)}
    inside.update(path for path in seen.kept if path.endswith(ATTRIBUTES))
    for path in (*(f"{checkout.top}/{path}" for path in inside), *checkout.attributes_files):
        try:
            with open(_open_plain(path), "rb") as file:
                said = file.read(ATTRIBUTES_MAX)
        except FileNotFoundError:
            # The commit has it, and what it says there counts as well.
            said = b"filter" if path.startswith(f"{checkout.top}/") else b""
        except OSError:
            said = b"filter"
        if KEEPING.search(said):
            found.add(Conversion.KEEPING)
        if WRITING.search(said):
            found.add(Conversion.WRITING)
    return found


def _changed(
    checkout: Checkout, commit: str, names: set[str], seen: _Seen, scratch: str
) -> list[str]:
    """Those that a checkout would write otherwise; its line ends, `$Id$` and encodings count."""
    others = [path for path in seen.changed if path not in names]
    if not names:
        return others
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=scratch) as directory:
        # No files of the worktree there, so that only attributes of the commit count.
        fresh = Checkout(f"{directory}/files", checkout.own, checkout.foreign)
        os.mkdir(fresh.top)
        env = {"GIT_INDEX_FILE": f"{directory}/index"}
        fresh.ask("read-tree", commit, env=env)
        stdin = os.fsencode("".join(f"{path}\0" for path in sorted(names)))
        fresh.ask("checkout-index", "-q", "-z", "--stdin", stdin=stdin, env=env, timeout_s=READ_S)
        for path in names:
            if not is_same(f"{checkout.top}/{path}", f"{fresh.top}/{path}"):
                others.append(path)
                if path not in seen.kept:
                    seen.kept[path] = os.lstat(f"{checkout.top}/{path}")
    seen.same = [found for found in seen.same if found.path not in seen.kept]
    return others


def _written_otherwise(checkout: Checkout, paths: list[str]) -> tuple[set[str], set[str]]:
    """Those that git may write with other bytes than it keeps, and those that have a filter."""
    stdin = os.fsencode("".join(f"{path}\0" for path in paths))
    asked = ("check-attr", "-z", "--stdin", "eol", "ident", "working-tree-encoding", "filter")
    answer = os.fsdecode(checkout.ask(*asked, stdin=stdin, timeout_s=READ_S).stdout).split("\0")
    plain = ("unspecified", "unset", "lf")
    records = zip(answer[::3], answer[1::3], answer[2::3], strict=False)
    set_ = [(path, name) for path, name, value in records if value not in plain]
    filtered = {path for path, name in set_ if name == "filter"}
    return (set(paths) if checkout.line_ends == "true" else {path for path, _ in set_}), filtered


def hash_file(path: str, facts: os.stat_result, like: str) -> str | None:
    """The name git would give the bytes as they are; None if they cannot be read."""
    sha = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    try:
        if stat.S_ISLNK(facts.st_mode):
            data = os.fsencode(os.readlink(path))
            return sha(b"blob %d\0" % len(data) + data).hexdigest()
        digest = sha(b"blob %d\0" % facts.st_size)
        with open(_open_plain(path), "rb", buffering=0) as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()
    except OSError:
        return None


def is_same(one: str, other: str) -> bool:
    try:
        with open(_open_plain(one), "rb") as left, open(_open_plain(other), "rb") as right:
            while (chunk := left.read(1 << 20)) == right.read(1 << 20):
                if not chunk:
                    return True
    except OSError:
        pass
    return False


def _open_plain(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
