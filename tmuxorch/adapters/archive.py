"""Files that git does not keep, in one tar that only its owner can read."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress

from tmuxorch.errors import CannotSave


def pack(archive: str, members: Sequence[tuple[str, str]], *, cap_bytes: int) -> int:
    """Write `(name, path)` pairs, directories with all below, to `archive`; returns how many.

    It appears whole and read back, or not at all. CannotSave if it would be over the cap or
    something in it cannot be read.
    """
    part = f"{archive}.part"
    try:
        found = [item for name, path in members for item in _walk(name, path)]
        total = sum(os.lstat(path).st_size for _, path in found)
        if total > cap_bytes:
            raise CannotSave(
                f"there are {human_size(total)} of files that git ignores, over the cap of "
                f"{human_size(cap_bytes)}; delete what can be made again, or raise the cap"
            )
        os.makedirs(os.path.dirname(archive), mode=0o700, exist_ok=True)
        sizes = _write(part, found)
        _verify(part, sizes)
        os.replace(part, archive)
        _sync_directory(os.path.dirname(archive))
    except (OSError, tarfile.TarError) as error:
        raise CannotSave(f"the archive {archive} could not be written: {error}") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)
    return len(sizes)


def _walk(name: str, path: str) -> Iterator[tuple[str, str]]:
    yield name, path
    if os.path.isdir(path) and not os.path.islink(path):
        for entry in sorted(os.listdir(path)):
            yield from _walk(f"{name}/{entry}", f"{path}/{entry}")


def _write(part: str, found: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Write the tar; returns the size of each member by its name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    sizes = {}
    with open(os.open(part, flags, 0o600), "wb") as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, path in found:
                member = tar.gettarinfo(path, name)
                if member is None:
                    continue  # a socket: nothing that could be saved
                if member.islnk():  # a second name of a file: stored as a file of its own
                    member.type, member.linkname = tarfile.REGTYPE, ""
                    member.size = os.lstat(path).st_size
                if member.isreg():
                    with open(path, "rb") as data:
                        tar.addfile(member, data)
                else:
                    tar.addfile(member)
                sizes[name] = member.size
        file.flush()
        os.fsync(file.fileno())
    return sizes


def _verify(part: str, sizes: dict[str, int]) -> None:
    with tarfile.open(part) as tar:
        if {member.name: member.size for member in tar} != sizes:
            raise CannotSave(f"{part} did not hold what was written to it")


def _sync_directory(path: str) -> None:
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def unpack(archive: str, name: str, into: str) -> None:
    """Put what is below `name` in the archive into the directory `into`, over what is there."""
    with tarfile.open(archive) as tar:
        # Only we write it, and its links are what they were, absolute ones too.
        tar.extraction_filter = lambda member, _: member
        chosen = [member for member in tar if member.name.startswith(f"{name}/")]
        for member in chosen:
            member.name = member.name.removeprefix(f"{name}/")
        tar.extractall(into, chosen)


def human_size(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
