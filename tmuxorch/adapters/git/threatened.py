"""Commits that nothing but a worktree's logs and half-done operations still name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from tmuxorch.adapters.git.call import git
from tmuxorch.errors import CannotSave
from tmuxorch.reading import read_regular

OID = re.compile(rb"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_LOG_MAX_BYTES = 256_000_000
# Files of a worktree's git directory that name commits: MERGE_HEAD and its like, the steps of
# a rebase, a bisect's refs, the log of HEAD.
STATES = ("BISECT_", "rebase-", "sequencer", "logs", "refs")


def observe_threatened(
    directory: str, own: str, known: Sequence[str], keepers: Sequence[str]
) -> list[str]:
    """Commits that the files of a worktree's git directory `own` name, and nothing else reaches.

    Neither `known` ones nor `keepers` (rev-list arguments for refs) lead to them.
    """
    named = {oid.decode() for data in _states(own) for oid in OID.findall(data)}
    named = {oid for oid in named.difference(known) if oid.strip("0")}
    if not named:
        return []
    lines = "".join(f"{oid}\n" for oid in sorted(named)).encode()
    asked = ("cat-file", "--batch-check=%(objecttype) %(objectname)")
    answer = git(directory, *asked, stdin=lines).stdout.decode().splitlines()
    commits = [line.removeprefix("commit ") for line in answer if line.startswith("commit ")]
    if not commits:
        return []
    lines = "".join(f"{oid}\n" for oid in commits).encode()
    only = git(directory, "rev-list", "--stdin", "--not", *known, *keepers, stdin=lines).stdout
    return sorted(set(commits).intersection(only.decode().split()))


def _states(own: str) -> Iterator[bytes]:
    for name in os.listdir(own):
        if name.startswith(STATES) or name.endswith("_HEAD"):
            for path in files_below(f"{own}/{name}"):
                # A FIFO or a link to nowhere names no commit.
                if os.path.isfile(path):
                    yield _read(path)


def _read(path: str) -> bytes:
    try:
        return read_regular(path, limit=_LOG_MAX_BYTES)
    except OSError as error:
        raise CannotSave(f"{path} could not be read: {error.strerror}") from None


def files_below(path: str) -> Iterator[str]:
    """`path` if it is a file, else every file below it."""
    if os.path.isfile(path):
        yield path
    for directory, _, names in os.walk(path):
        yield from (f"{directory}/{name}" for name in names)
