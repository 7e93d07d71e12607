"""Deleting a directory with all that is below it."""

from __future__ import annotations

from tmuxorch.adapters.git.call import last_words
from tmuxorch.adapters.run import Timeout, run
from tmuxorch.errors import GitFailed

DELETE_S = 3600.0
# Read-only directories (Go's module cache) stop `rm` until they are made writable. What is
# mounted below is not ours to empty; not every `rm` can be told so.
DELETE = """
here=$(rm --help 2>&1 | grep -o -e --one-file-system | head -n 1)
rm -rf $here -- "$1" 2>/dev/null || {
    find "$1" -xdev -type d -exec chmod u+rwx {} + ; rm -rf $here -- "$1"
}
"""


def delete_directory(path: str, *, background: bool = False) -> None:
    """Delete it, read-only directories too; in the background nobody waits or is told."""
    script = f"{{ {DELETE} }} >/dev/null 2>&1 &" if background else DELETE
    try:
        done = run(("sh", "-c", script, "sh", path), timeout_s=DELETE_S)
    except Timeout as late:
        raise GitFailed(f"{path} was not deleted: {late}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise GitFailed(f"{path} could not be deleted: {last_words(said)}", stderr=said)
