"""Commits that go with a worktree: nothing but its own HEAD, logs and operations name them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.system.treewalk import walk
from tmuxorch.errors import CannotSave
from tmuxorch.reading import read_regular

OID = re.compile(rb"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
# Files of a worktree's git directory that name commits: MERGE_HEAD and its like, the steps of
# a rebase, a bisect's refs; and the logs, which git does not show of a HEAD without a commit.
STATES = ("BISECT_", "rebase-", "sequencer", "refs", "logs")
STATE_MAX = 1 << 24


def observe_named(own: str, branch: str | None) -> set[str]:
    """The commits that the logs of HEAD and `branch` and a half-done operation in `own` name."""
    where = f"--git-dir={own}"
    named = {oid.decode() for data in _states(own) for oid in OID.findall(data)}
    for ref in ("HEAD", *([f"refs/heads/{branch}"] if branch else [])):
        # git is asked, for the logs are not always files.
        asked = (where, "rev-list", "--walk-reflogs", "--ignore-missing", ref, "--")
        named.update(git(own, *asked, ok=(0, 128)).stdout.decode().split())
    return {oid for oid in named if oid.strip("0")}


def observe_threatened(
    directory: str, named: Iterable[str], known: Sequence[str], keepers: Sequence[str]
) -> list[str]:
    """Those of the `named` that neither `known` commits nor `keepers` (rev-list's) lead to."""
    oids = sorted(set(named).difference(known))
    if not oids:
        return []
    lines = "".join(f"{oid}\n" for oid in oids).encode()
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
        return read_regular(path, limit=STATE_MAX)
    except OSError as error:
        raise CannotSave(f"{path} could not be read: {error.strerror}") from None


def files_below(path: str) -> Iterator[str]:
    """`path` if it is a file, else every file below it."""
    if os.path.isfile(path):
        yield path
    elif os.path.isdir(path):
        yield from (f"{path}/{f.path}" for f in walk(path) if os.path.isfile(f"{path}/{f.path}"))
