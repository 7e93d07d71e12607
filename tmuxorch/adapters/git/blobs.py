"""Files of a commit written byte for byte: no filter, no line ends, no `$Id$`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from tmuxorch.adapters.git.call import CHECKOUT_S
from tmuxorch.adapters.git.checkout import Checkout
from tmuxorch.errors import GitFailed

# Objects that are asked for in one go: what they hold is in memory for a moment.
BATCH_BYTES = 64 * 1024 * 1024
File = tuple[str, int, str]


def write_blobs(checkout: Checkout, files: Sequence[File]) -> None:
    """Write `(path, permissions, object)`; a link has S_IFLNK for permissions.

    Nothing is there yet but directories. Raises OSError and GitFailed.
    """
    for some in _batches(checkout, files):
        stdin = "".join(f"{oid}\n" for _, _, oid in some).encode()
        answer = checkout.ask("cat-file", "--batch", stdin=stdin, timeout_s=CHECKOUT_S).stdout
        position = 0
        for path, mode, oid in some:
            end = answer.index(b"\n", position)
            about = answer[position:end].split(b" ")
            if len(about) != 3 or about[1] != b"blob":
                raise GitFailed(f"the object {oid[:10]} of {path} is not in {checkout.own}")
            size = int(about[2])
            _write(f"{checkout.top}/{path}", mode, answer[end + 1 : end + 1 + size])
            position = end + size + 2


def _batches(checkout: Checkout, files: Sequence[File]) -> Iterator[list[File]]:
    stdin = "".join(f"{oid}\n" for _, _, oid in files).encode()
    asked = ("cat-file", "--batch-check=%(objectsize)")
    sizes = checkout.ask(*asked, stdin=stdin, timeout_s=CHECKOUT_S).stdout.split(b"\n")
    batch: list[File] = []
    total = 0
    for file, size in zip(files, sizes, strict=False):
        batch.append(file)
        total += int(size) if size.isdigit() else 0
        if total > BATCH_BYTES:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _write(path: str, mode: int, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if mode == stat.S_IFLNK:
        os.symlink(data, os.fsencode(path))
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
