"""Where tmuxorch keeps its things and which tmux server it talks to, read off the environment.

`tmuxorch ls` imports this module: `os` and `sys` only.
"""

from __future__ import annotations

import os
import sys

from tmuxorch.errors import ConfigInvalid, StoreUnusable, UsageError

TYPE_CHECKING = False  # as in typing, without the millisecond of importing it
if TYPE_CHECKING:
    from collections.abc import Mapping

# sun_path holds 108 bytes on Linux and 104 on macOS, the closing NUL included.
_SOCKET_PATH_MAX_BYTES = 103 if sys.platform == "darwin" else 107
_SHARED_WITH_OTHERS = 0o077
_STICKY = 0o1000


def state_dir(environ: Mapping[str, str]) -> str:
    """The directory of the store, logs, archives and locks."""
    return _place(environ, "TMUXORCH_STATE_DIR", "XDG_STATE_HOME", ".local/state", "tmuxorch")


def worktrees_dir(environ: Mapping[str, str]) -> str:
    """The directory all worktrees are made under."""
    return _place(
        environ, "TMUXORCH_WORKTREES_DIR", "XDG_DATA_HOME", ".local/share", "tmuxorch/worktrees"
    )


def config_path(environ: Mapping[str, str]) -> str:
    """The user's config file, which need not exist."""
    return _place(environ, "TMUXORCH_CONFIG", "XDG_CONFIG_HOME", ".config", "tmuxorch/config.toml")


def _place(environ: Mapping[str, str], own: str, xdg: str, fallback: str, below: str) -> str:
    if chosen := environ.get(own):
        return os.path.abspath(_expand(environ, chosen, own))
    base = environ.get(xdg, "")
    if not os.path.isabs(base):  # the XDG specification: a relative value is to be ignored
        base = os.path.join(_home(environ, own), fallback)
    return os.path.normpath(os.path.join(base, below))


def _expand(environ: Mapping[str, str], path: str, variable: str) -> str:
    if path == "~" or path.startswith("~/"):
        return _home(environ, variable) + path[1:]
    return path


def _home(environ: Mapping[str, str], variable: str) -> str:
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        raise ConfigInvalid(
            f"HOME is {'not an absolute path' if home else 'not set'}: "
            f"set it, or set {variable} to an absolute path"
        )
    return home


def ensure_private(path: str) -> None:
    """Make the directory, and parents it lacks, for us only; close it if it is ours and open.

    StoreUnusable if it is another user's or cannot be closed: what lies in it is run as us.
    """
    try:
        _make(path)
        status = os.stat(path)
        if status.st_uid != os.geteuid():
            raise _unusable(path, _not_ours(status.st_uid))
        if status.st_mode & _STICKY:
            raise _unusable(path, "it is shared by design (sticky), choose one below it")
        if status.st_mode & _SHARED_WITH_OTHERS:
            os.chmod(path, 0o700)
            if os.stat(path).st_mode & _SHARED_WITH_OTHERS:
                raise _unusable(path, "its file system cannot close it to other users")
    except (FileExistsError, NotADirectoryError) as error:
        raise _unusable(path, "something that is not a directory is in the way") from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise _unusable(path, "it is not writable")


def _make(path: str) -> None:
    """As `os.makedirs`, which would leave the parents it makes to the umask."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if parent == path or os.path.lexists(parent):
            raise
        _make(parent)
        _make(path)


def check_ours(state_dir: str) -> None:
    """StoreUnusable if the state directory, or anything right in it, is another user's.

    A store, launch file or lock that somebody else can write is somebody else's word. A
    directory that is not there yet is fine.
    """
    try:
        if (owner := os.stat(state_dir).st_uid) != os.geteuid():
            raise _unusable(state_dir, _not_ours(owner))
        with os.scandir(state_dir) as entries:
            for entry in entries:
                if _owner(entry) not in (None, os.geteuid()):
                    raise _unusable(state_dir, f"{entry.name} in it belongs to another user")
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(state_dir, error.strerror or str(error)) from error


def _owner(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_uid
    except FileNotFoundError:  # a journal or a temporary file, gone meanwhile
        return None


def _not_ours(owner: int) -> str:
    return f"it belongs to another user (uid {owner})"


def _unusable(path: str, reason: str) -> StoreUnusable:
    return StoreUnusable(f"the directory {path} cannot be used: {reason}")


def socket_path(environ: Mapping[str, str], name: str | None, path: str | None) -> str:
    """The absolute socket path of the tmux server meant by `-L name`, `-S path` or the environment.

    As with tmux itself, a path wins over a name and both win over the environment.
    """
    chosen = path or (_named_socket(environ, name) if name else _socket_of(environ))
    absolute = os.path.abspath(chosen)
    if (length := len(os.fsencode(absolute))) > _SOCKET_PATH_MAX_BYTES:
        raise ConfigInvalid(
            f"the tmux socket path {absolute} is {length} bytes long and a socket's may have "
            f"{_SOCKET_PATH_MAX_BYTES}: choose a shorter one with -S PATH or TMUX_TMPDIR"
        )
    return absolute


def _socket_of(environ: Mapping[str, str]) -> str:
    if own := environ.get("TMUXORCH_SOCKET"):
        if "/" in own:
            return _expand(environ, own, "TMUXORCH_SOCKET")
        return _named_socket(environ, own)
    if inside := environ.get("TMUX", "").partition(",")[0]:
        return inside
    return _named_socket(environ, "default")


def _named_socket(environ: Mapping[str, str], name: str) -> str:
    if "/" in name or name in {".", ".."}:
        raise UsageError(f"-L takes the name of a tmux server, not {name!r}: give a path with -S")
    # tmux resolves the directory, and falls back to /tmp if the variable names none; $TMUX holds
    # the resolved path, so ours must be spelled the same to be the same server.
    directory = environ.get("TMUX_TMPDIR", "")
    if not os.path.isdir(directory):
        directory = "/tmp"
    return os.path.join(os.path.realpath(directory), f"tmux-{os.getuid()}", name)
