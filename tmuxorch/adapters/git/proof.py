"""Proof that an index holds what is in the files: by a look of git's, and byte for byte."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator

from tmuxorch.adapters.git.status import SUBMODULE, UNTRACKED, Entry, Status
from tmuxorch.errors import CannotSave


def is_nested(entry: Entry) -> bool:
    """A submodule or another repository; one without a commit git cannot even name."""
    return entry.submodule[0] == "S" or (entry.xy == UNTRACKED and entry.path.endswith("/"))


def not_added(status: Status) -> list[str]:
    """The files that are otherwise than the index has them, so not in it."""
    return [e.path for e in status.entries if e.xy[1] != "." and not _is_inner(e)]


def _is_inner(entry: Entry) -> bool:
    """A change inside a nested repository, which gets a snapshot of its own."""
    return is_nested(entry) and "C" not in entry.submodule


def observe_inexact(top: str, status: Status) -> Iterator[str]:
    """Compare every changed file with the object git made of it; yields those that differ."""
    for entry in status.entries:
        if is_nested(entry) or entry.mode == SUBMODULE:
            continue
        path = f"{top}/{entry.path}"
        if entry.xy[0] == "D":
            if os.path.lexists(path) and not os.path.isdir(path):
                raise CannotSave(f"{path} came back while it was being saved")
        elif hash_file(path, entry.index_oid) != entry.index_oid:
            yield entry.path


def hash_file(path: str, like: str) -> str:
    """The name git would give the file's bytes as they are."""
    sha = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    try:
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            data = os.fsencode(os.readlink(path))
            return sha(b"blob %d\0" % len(data) + data).hexdigest()
        digest = sha(b"blob %d\0" % facts.st_size)
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()
    except OSError as error:
        raise CannotSave(f"{path} could not be read: {error.strerror}") from None
