"""Where we are: the machine, the same after a reboot and another wherever else our files are
seen, and the pid namespace."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache

from tmuxorch.adapters.system.small_files import read_file

# The second is where systems without systemd keep it.
_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_DIGITS = 16
_CONNECT_S = 1.0


@cache
def read_machine() -> str:
    """A digest for the machine, or the container; empty if nothing here tells it from others.

    The machine id alone is not enough: copies of one image carry the same. Nor is the host
    name: where a container has no machine id, its root file system speaks for it instead.
    """
    import hashlib

    hardware = _hardware_id() if sys.platform == "darwin" else ""
    # macOS takes another name with each network, and its hardware's number is not copied.
    parts = (hardware,) if hardware else (_machine_id() or _root_file_system(), os.uname().nodename)
    if not all(parts):
        return ""
    return hashlib.sha256("\0".join(("tmuxorch", *parts)).encode()).hexdigest()[:_DIGITS]


def _machine_id() -> str:
    for path in _FILES:
        with suppress(OSError, ValueError):
            found = read_file(path).decode("ascii").strip()
            int(found, 16)  # before the first boot of an image it is empty or `uninitialized`
            return found
    return ""


def _root_file_system() -> str:
    with suppress(OSError):
        number = os.statvfs("/").f_fsid
        return f"{number:x}" if number else ""
    return ""


def _hardware_id() -> str:
    """The UUID that macOS gives its hardware."""
    import ctypes

    with suppress(OSError, AttributeError):
        found, no_wait = ctypes.create_string_buffer(16), (ctypes.c_long * 2)()
        if ctypes.CDLL(None).gethostuuid(found, no_wait) == 0:
            return found.raw.hex()
    return ""


def is_outside(socket_path: str) -> bool:
    """Whether who listens on the socket is outside of our pid namespace; nobody is not."""
    import socket
    import struct

    if not hasattr(socket, "SO_PEERCRED"):
        return False
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_CONNECT_S)
        try:
            client.connect(socket_path)
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            return False
    return bool(struct.unpack("3i", credentials)[0] == 0)
