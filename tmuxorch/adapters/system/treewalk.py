"""A directory as it is: every entry below it, read off the file system and nothing else.

Names are followed from open directories, so that neither a depth of thousands nor paths longer
than the system takes stop a walk, and no link leads it elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# The longest path that is asked for in one go; the system takes 4096 bytes at the most.
REACH = 2000
# Of a directory: nobody may read what is in it.
SEALED = -1


class Found(NamedTuple):
    """One entry below the top; `entries` is how many a directory has, `SEALED` if unreadable."""

    path: str
    stat: os.stat_result
    entries: int = 0


def walk(top: str) -> Iterator[Found]:
    """All below `top`, a directory before what is in it; what goes meanwhile is passed over.

    Raises OSError only for `top` itself.
    """
    anchor = os.open(top, DIRECTORY)
    # What is to be looked at: an open directory, the way from there, and the way from the top.
    # An empty way closes the directory, once all that hangs from it has been seen.
    pending: list[tuple[int, str, str, os.stat_result | None]] = [
        (anchor, "", "", None),
        (anchor, ".", "", None),
    ]
    try:
        while pending:
            anchor, below, path, facts = pending.pop()
            if not below:
                os.close(anchor)
                continue
            yield from _scan(pending, anchor, below, path, facts)
    finally:
        for anchor in {entry[0] for entry in pending if not entry[1]}:
            os.close(anchor)


def _scan(
    pending: list[tuple[int, str, str, os.stat_result | None]],
    anchor: int,
    below: str,
    path: str,
    facts: os.stat_result | None,
) -> Iterator[Found]:
    try:
        here = os.open(below, DIRECTORY, dir_fd=anchor)
    except FileNotFoundError:
        return
    except OSError:
        if facts is not None:
            yield Found(path, facts, SEALED)
        return
    prefix = f"{path}/" if path else ""
    if len(below) > REACH:
        pending.append((here, "", "", None))
        anchor, way = here, ""
    else:
        way = "" if below == "." else f"{below}/"
    files, directories = [], []
    try:
        with os.scandir(here) as entries:
            for entry in entries:
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    directories.append((anchor, way + name, prefix + name, stat))
                else:
                    files.append(Found(prefix + name, stat))
    finally:
        if anchor != here:
            os.close(here)
    if facts is not None:
        yield Found(path, facts, len(files) + len(directories))
    yield from files
    pending.extend(directories)
