"""Text made to be obeyed: what outside text may hold, and how to see that none of it got out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import product

from tests.conftest import DEADLINE_S

ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"

_CONTROLS = [chr(code) for code in (*range(1, 0x20), *range(0x7F, 0xA0))]
_INVISIBLE = [
    chr(code)
    for code in (
        0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x3164, 0xFEFF, 0xFFA0,
        *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE0F), *range(0xFFF9, 0xFFFC), 0x1D173, 0xE0001, 0xE0020, 0xE0041,
        0xE007F, 0xE0100, 0xE01EF,
    )
]  # fmt: skip
_BYTES = [chr(0xDC00 + byte) for byte in (*range(0x80, 0xA0), 0xC0, 0xC1, 0xF5, 0xFE, 0xFF)]
_STRINGS = [
    f"{start}{body}{end}"
    for start, body, end in product(
        (f"{ESC}]", f"{ESC}P", f"{ESC}_", f"{ESC}^", f"{ESC}X", *"\x9d\x90\x9f\x98\x9e"),
        ("0;owned", "2;owned", "8;;http://evil/", "52;c;b3duZWQ=", "1337;File=:AAAA", "4;1;?"),
        (BEL, ST, "\x9c", ""),
    )
]
_SEQUENCES = [
    f"{start}{rest}"
    for start, rest in product(
        (f"{ESC}[", "\x9b"),
        ("2J", "H", "1;1H", "?1049h", "?1000h", "?2004h", "6n", "c", ">c", "5n", "21t", "8;1;1t",
         "31m", "8m", "0;30;40m", "200~", "201~", "s", "u", "K", "1A", "4h", "!p", "2;1r", "?25l",
         '1"q', "$p", "99999999999999999999m", "m" * 50),
    )
]  # fmt: skip
_SHORT = [f"{ESC}{c}" for c in "78cDEHMNOZ=>()*+#%&"] + [ESC, f"{ESC}{ESC}", f"a{ESC}"]
_PLAYS = [
    "[@click=app.quit]x[/]", "[bold red]x[/]", "[/nothing]", "[link=http://x]x[/link]", "\\[x]",
    "{}", "{0}", "{task}", "%s", "%n%n", "$(id)", "`id`", "#(id)", "#{pane_id}", "; id", "| id",
    "two\nlines", "over\rwritten", "b\x08ack", "tab\there", "-rf", "--help", "'", '"', "x" * 5000,
    "日本語" * 20, "e\u0301" * 50, "\u0301" * 100, "👩\u200d💻", "❤\ufe0f", "\ufe0f",
    "\u202eevil.exe", "\u2066a\u2069", "a\u200bb", "\ud800", "\udfff\ud800", "\udce2\udc80",
]  # fmt: skip

STRINGS = [
    *(f"<{character}>" for character in (*_CONTROLS, *_INVISIBLE, *_BYTES)),
    *_STRINGS,
    *_SEQUENCES,
    *_SHORT,
    *_PLAYS,
]
assert len(STRINGS) >= 500
# Those that a program can be given, where bytes that are not UTF-8 are the only surrogates.
ARGUMENTS = [text for text in STRINGS if not re.search("[\ud800-\udc7f\udd00-\udfff]", text)]
# Those that can be in a file of text, and in the store.
TEXTS = [text for text in STRINGS if not re.search("[\ud800-\udfff]", text)]
LINES = [text for text in TEXTS if "\n" not in text]

# What Textual itself says to a terminal: sequences that begin with CSI, and nothing longer.
CSI = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_SGR = re.compile(r"\x1b\[[0-9;:]{0,64}m")
_CATEGORIES = ("Cc", "Cf", "Zl", "Zp")
_OBEYED = re.compile(
    "["
    + "".join(
        re.escape(character)
        for character in map(
            chr, (*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE1000))
        )
        if character not in "\n\t"
        and (unicodedata.category(character) in _CATEGORIES or character in _INVISIBLE)
    )
    + "\ud800-\udfff]"
)


def find_obeyed(data: bytes, *, colours: bool = False) -> list[str]:
    """What in the raw bytes a terminal would obey, with what stands around it.

    Line ends and tabs are layout; `colours` are not counted where they may be.
    """
    text = data.decode("utf-8", "surrogateescape")
    if colours:
        text = _SGR.sub("", text)
    text = text.replace("\r\n", "\n")
    found = (match.start() for match in _OBEYED.finditer(text))
    return [ascii(text[max(0, at - 30) : at + 30]) for at in found]


def on_terminal(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: os.PathLike[str] | str,
    steps: Sequence[tuple[bytes, bytes]] = (),
    size: tuple[int, int] = (50, 200),
) -> tuple[int, bytes]:
    """Run a program on a terminal of its own; its status and every byte that it wrote there.

    Of each step the second is typed when the first has been seen since the step before.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    process = subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen, since, todo = b"", 0, list(steps)
    deadline = time.monotonic() + 3 * DEADLINE_S
    try:
        while True:
            if not select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{argv[:3]} did not end: {todo} {seen[-500:]!r}")
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the last one on the other side has gone
                break
            if not chunk:
                break
            seen += chunk
            if todo and todo[0][0] in CSI.sub(b"", seen[since:]):
                os.write(ours, todo.pop(0)[1])
                since = len(seen)
        return process.wait(DEADLINE_S), seen
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()
