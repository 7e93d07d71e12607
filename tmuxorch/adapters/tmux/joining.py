"""A control client that a tmux server takes in at one go.

tmux up to 3.6 crashes, and every window with it, if it has something to announce (a session
comes or goes, a client leaves, a mode begins) while a control client introduces itself: from
its first message on it counts as one, but only after the last it has what announcing needs.
`tmux -C` sends these messages in three portions, between which the server turns to others.
Here all that names the client a control client lies in one.

This file is also a script: it asks the server for its version, introduces itself like that to
one that needs it, and becomes `tmux -C` for all others. It never speaks to a release that it
does not know: a message of the wrong form can end a server.
"""

import os
import socket
import struct
import sys

PROTOCOL = 8
FLAGS, TERM, TTYNAME, STDIN, DONE, CLIENTPID, CWD = 100, 101, 102, 104, 106, 107, 108
FEATURES, STDOUT, LONGFLAGS, COMMAND = 109, 110, 111, 200
# What tells a client to go: detached, detached with a hang-up, exit, exited, shutdown.
DISMISSALS = (201, 202, 203, 204, 210)
CONTROL_AND_UTF8 = 0x2000 | 0x10000

# type, length, whether a descriptor comes along, protocol, sender
UNTIL_3_5 = struct.Struct("=IHHII")
# type, length whose top bit says whether a descriptor comes along, protocol, sender
SINCE_3_6 = struct.Struct("=IIII")
HEADERS = {
    **dict.fromkeys(("3.2", "3.3", "3.4", "3.5"), UNTIL_3_5),
    "3.6": SINCE_3_6,
}


def header_of(version: str) -> struct.Struct | None:
    """How this release of tmux begins a message; None if its own client is to be used."""
    return HEADERS.get(version.rstrip("abcdefghijklmnopqrstuvwxyz"))


def introduce(
    server: socket.socket, header: struct.Struct, stdin: int, stdout: int, command: list[str]
) -> None:
    """Become a control client that reads and writes at these descriptors; run the command."""

    def message(kind: int, data: bytes = b"", *, descriptor: bool = False) -> bytes:
        length = header.size + len(data)
        if header is SINCE_3_6:
            start = header.pack(kind, length | descriptor << 31, PROTOCOL, os.getpid())
        else:
            start = header.pack(kind, length, descriptor, PROTOCOL, os.getpid())
        return start + data

    # A portion ends at each descriptor: these go while nothing else is known of the client.
    socket.send_fds(server, [message(STDIN, descriptor=True)], [stdin])
    socket.send_fds(server, [message(STDOUT, descriptor=True)], [stdout])
    words = b"".join(os.fsencode(word) + b"\0" for word in command)
    server.sendall(
        b"".join(
            (
                message(FLAGS, struct.pack("=i", CONTROL_AND_UTF8)),
                message(LONGFLAGS, struct.pack("=Q", CONTROL_AND_UTF8)),
                message(TERM, b"unknown\0"),
                message(FEATURES, struct.pack("=i", 0)),
                message(TTYNAME, b"\0"),
                message(CWD, b"/\0"),
                message(CLIENTPID, struct.pack("=i", os.getpid())),
                message(DONE),
                message(COMMAND, struct.pack("=i", len(command)) + words),
            )
        )
    )


def wait_until_dismissed(server: socket.socket, header: struct.Struct) -> None:
    """Return when the server has written all that it had for this client, or has gone."""
    received = b""
    while chunk := server.recv(1 << 16):
        received += chunk
        while len(received) >= header.size:
            kind, length = header.unpack_from(received)[:2]
            if kind in DISMISSALS:
                return
            if len(received) < length:
                break
            received = received[length:]


def main() -> None:
    program, path, *command = sys.argv[1:]
    tmux = [program, "-u", "-N", "-S", path]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        try:
            server.connect(path)
            # Asked after connecting: if another server takes the place, this connection is dead.
            header = header_of(_ask([*tmux, "display-message", "-p", "#{version}"]))
            if header is not None:
                introduce(server, header, 0, 1, command)
                wait_until_dismissed(server, header)
                return
        except OSError as e:
            sys.exit(f"error connecting to {path} ({e.strerror or e})")
    os.execv(program, [*tmux, "-C", *command])


def _ask(argv: list[str]) -> str:
    """What a command answers; ends like it if it fails, which has said why."""
    reading, writing = os.pipe()
    to_us = [(os.POSIX_SPAWN_DUP2, writing, 1)]
    child = os.posix_spawn(argv[0], argv, os.environ, file_actions=to_us)
    os.close(writing)
    with open(reading, "rb") as answer:
        said = os.fsdecode(answer.read()).strip()
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(status)
    return said


if __name__ == "__main__":
    main()
