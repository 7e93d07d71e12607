"""Is a tmux socket ours to talk to? A client hands its whole environment to whoever listens.

tmux checks the directory it makes for named servers, and nothing at all under `-S`, which is
how everything here calls it.
"""

from __future__ import annotations

import os
import stat

from tmuxorch.errors import SocketUnsafe

_OPEN_TO_OTHERS = 0o077


def make_directory(socket: str) -> None:
    """Make `tmux-UID` for a named server as tmux would; any other directory is the person's.

    SocketUnsafe if the directory is not there afterwards, or the socket is not to be trusted.
    """
    directory = os.path.dirname(socket)
    try:
        if _is_tmux_own(directory):
            try:
                os.mkdir(directory, 0o700)
            except FileExistsError:
                pass
            else:
                os.chmod(directory, 0o700)  # a umask may have taken our own bits
        os.stat(directory)
    except OSError as e:
        raise SocketUnsafe(
            f"no tmux server can be started on {socket}: {directory}: {e.strerror}"
        ) from e
    check_socket(socket)


def check_socket(socket: str) -> None:
    """SocketUnsafe if another user owns the socket or could put his own in its place.

    A socket or directory that does not exist is fine: there is nobody to talk to.
    """
    try:
        for path in {socket, os.path.realpath(socket)}:
            _check_directory(socket, os.path.dirname(path))
        if (owner := os.stat(socket).st_uid) != os.getuid():
            raise _unsafe(socket, f"it belongs to another user (uid {owner})")
    except FileNotFoundError:
        return
    except OSError as e:
        raise _unsafe(socket, f"it cannot be looked at: {e.strerror}") from e


def _check_directory(socket: str, directory: str) -> None:
    if _is_tmux_own(directory):
        found = os.lstat(directory)
        if not stat.S_ISDIR(found.st_mode):
            raise _unsafe(socket, f"{directory} is not a directory")
        if found.st_uid != os.getuid():
            raise _unsafe(socket, f"{directory} belongs to another user (uid {found.st_uid})")
        if found.st_mode & _OPEN_TO_OTHERS:
            raise _unsafe(socket, f"{directory} is open to other users; run: chmod 700 {directory}")
        return
    found = os.stat(directory)
    if found.st_uid not in (0, os.getuid()):
        raise _unsafe(socket, f"{directory} belongs to another user (uid {found.st_uid})")
    # A group of one's own is what makes a umask of 002 safe.
    others = stat.S_IWOTH if found.st_gid == os.getgid() else stat.S_IWOTH | stat.S_IWGRP
    if found.st_mode & others and not found.st_mode & stat.S_ISVTX:
        raise _unsafe(socket, f"other users may write in {directory}")


def _is_tmux_own(directory: str) -> bool:
    return os.path.basename(directory) == f"tmux-{os.getuid()}"


def _unsafe(socket: str, why: str) -> SocketUnsafe:
    return SocketUnsafe(
        f"the tmux socket {socket} is not safe to use: {why}; nothing was sent to it"
    )
