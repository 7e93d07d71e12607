"""git's index read off its own file: names, objects, and what each file looked like to git.

Asking git would do, but for the times and numbers by which a file is known without reading it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tmuxorch.reading import read_regular

EXTENDED, ASSUMED = 0x4000, 0x8000
SKIPPED = 0x4000  # of the extended flags
# Extensions that keep entries elsewhere or fold them: only git itself can read such an index.
FOLDED = (b"link", b"sdir")
INDEX_MAX = 1 << 30


class Unreadable(Exception):
    """The file is not an index that can be read here; git may still be able to."""


# What git saw of a file when it last compared it: ctime, mtime (in ns), inode and size.
Marks = tuple[int, int, int, int]


class IndexEntry(NamedTuple):
    """`stage` is 0 unless in conflict; `marks` is None where they are not known.

    `skipped` and `assumed` are what somebody told git: not to have the file, not to look at it.
    """

    mode: int
    oid: str
    stage: int = 0
    skipped: bool = False
    marks: Marks | None = None
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """Entries by path; those in conflict are apart. Marks younger than `at_ns` prove nothing."""

    entries: dict[str, IndexEntry] = field(default_factory=dict)
    conflicts: tuple[tuple[str, IndexEntry], ...] = ()
    at_ns: int = 0


def read_index(path: str, oid_size: int) -> Index:
    """The index in that file, empty if there is none; Unreadable if only git can read it."""
    try:
        at_ns = os.stat(path).st_mtime_ns
        data = read_regular(path, limit=INDEX_MAX)
    except FileNotFoundError:
        return Index()
    except OSError as error:
        raise Unreadable(str(error)) from None
    entries: dict[str, IndexEntry] = {}
    conflicts = []
    try:
        for name, entry in _entries(data, oid_size):
            if entry.stage:
                conflicts.append((name, entry))
            else:
                entries[name] = entry
    except (struct.error, IndexError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from None
    return Index(entries, tuple(conflicts), at_ns)


def _entries(data: bytes, oid_size: int) -> Iterator[tuple[str, IndexEntry]]:
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index of a known version")
    read = struct.Struct(f">10I{oid_size}sH").unpack_from
    fixed, position, name = 42 + oid_size, 12, b""
    for _ in range(count):
        start = position + fixed
        c_s, c_ns, m_s, m_ns, _, inode, mode, _, _, size, oid, flags = read(data, position)
        more = 0
        if flags & EXTENDED:
            more = int.from_bytes(data[start : start + 2], "big")
            start += 2
        if version == 4:
            cut, start = _varint(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - cut] + data[start:end]
            position = end + 1
        else:
            length = flags & 0xFFF
            end = start + length if length < 0xFFF else data.index(b"\0", start)
            name = data[start:end]
            position += (end - position + 8) & ~7
        yield (
            name.decode("utf-8", "surrogateescape"),
            IndexEntry(
                mode,
                oid.hex(),
                flags >> 12 & 3,
                bool(more & SKIPPED),
                (c_s * 10**9 + c_ns, m_s * 10**9 + m_ns, inode, size),
                bool(flags & ASSUMED),
            ),
        )
    while position + 8 <= len(data) - oid_size:
        extension, length = struct.unpack_from(">4sI", data, position)
        if extension in FOLDED:
            raise ValueError("its entries are kept elsewhere")
        position += 8 + length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    value, position = byte & 127, position + 1
    while byte & 128:
        byte = data[position]
        value, position = (value + 1 << 7) | (byte & 127), position + 1
    return value, position
