"""Deleting a directory with all that is below it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache

from tmuxorch.adapters.git.call import last_words
from tmuxorch.adapters.system.run import Timeout, run
from tmuxorch.errors import GitFailed

DELETE_S = 3600.0
# Two lists of names, each ended by a NUL: files, and directories that are empty then.
PRUNE = (
    '{ cd -- "$1" && xargs -0 rm -f -- <"$2" && xargs -0 rmdir -- <"$3" ; rm -f -- "$2" "$3" ; }'
    " >/dev/null 2>&1 &"
)
# Read-only directories (Go's module cache) stop `rm` until they are made writable. What is
# mounted below is not ours to empty; not every `rm` can be told so.
DELETE = """
rm -rf $2 -- "$1" 2>/dev/null || {
    find "$1" -xdev -type d -exec chmod u+rwx {} + ; rm -rf $2 -- "$1"
}
"""
ONE_DISK = "--one-file-system"


def delete_directory(path: str, *, background: bool = False) -> None:
    """Delete it, read-only directories too; in the background nobody waits or is told."""
    with suppress(OSError):
        os.rmdir(path)
        return
    script = f"{{ {DELETE} }} >/dev/null 2>&1 &" if background else DELETE
    try:
        done = run(("sh", "-c", script, "sh", path, _on_one_disk()), timeout_s=DELETE_S)
    except Timeout as late:
        raise GitFailed(f"{path} was not deleted: {late}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise GitFailed(f"{path} could not be deleted: {last_words(said)}", stderr=said)


@cache
def _on_one_disk() -> str:
    """The option of `rm` for it, if it has one."""
    known = ONE_DISK.encode() in run(("rm", "--help"), timeout_s=DELETE_S).stdout
    return ONE_DISK if known else ""


def prune_directory(top: str, files: Iterable[str], kept: Iterable[str]) -> None:
    """Delete `files` below `top` in the background, and the directories that only held those.

    It is no harm if it does not come to its end.
    """
    needed = {above for path in kept for above in _above(path)} | {*kept}
    names = list(files)
    empty = {above for path in names for above in _above(path)} - needed
    lists = (f"{top}.files", names), (f"{top}.directories", sorted(empty, key=len, reverse=True))
    try:
        for path, entries in lists:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(os.fsencode("".join(f"./{entry}\0" for entry in entries)))
        run(("sh", "-c", PRUNE, "sh", top, *(path for path, _ in lists)), timeout_s=DELETE_S)
    except (OSError, Timeout):
        return


def _above(path: str) -> list[str]:
    """The directories that a path is in."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
