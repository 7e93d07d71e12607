"""The process that tells the words of code apart, one line at a time.

A lexer's regular expressions can take for ever on a line that was made for that, and while one
runs nothing else in its process does. So they run here: for each line the kernel is asked for
a signal after a little time on the processor, and that ends the process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from functools import cache
from typing import IO, Any

LINE_CPU_S = 0.2
MEMORY_MAX_BYTES = 1 << 30

# Only these are used: each survives the lines of tests/integration/test_highlight.py.
_LEXERS = {
    "bash": "sh bash zsh ksh .bashrc .profile",
    "c": "c h",
    "cmake": "cmake CMakeLists.txt",
    "cpp": "cc cpp cxx hh hpp hxx",
    "csharp": "cs",
    "css": "css",
    "dart": "dart",
    "docker": "dockerfile Dockerfile Containerfile",
    "go": "go",
    "graphql": "graphql gql",
    "html": "html htm",
    "ini": "ini cfg conf .editorconfig .gitconfig",
    "java": "java",
    "javascript": "js mjs cjs jsx",
    "json": "json jsonc ipynb",
    "kotlin": "kt kts",
    "lua": "lua",
    "make": "mk mak Makefile GNUmakefile makefile",
    "php": "php",
    "protobuf": "proto",
    "python": "py pyi pyw",
    "ruby": "rb rake gemspec Gemfile Rakefile",
    "rust": "rs",
    "scala": "scala sbt",
    "scss": "scss",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "typescript": "ts mts cts tsx",
    "xml": "xml svg xsd xsl",
    "yaml": "yaml yml",
}
_BY_ENDING = {ending: name for name, endings in _LEXERS.items() for ending in endings.split()}
LEXERS = tuple(_LEXERS)

# A piece of code and the kind of word it is.
Piece = tuple[str, str]


def lexer_for(path: str) -> str | None:
    """The lexer for a file of this name, if there is one to be trusted with it."""
    name = path.rpartition("/")[2]
    return _BY_ENDING.get(name) or _BY_ENDING.get(name.rpartition(".")[2].lower())


def tell_apart(lexer: str, code: str) -> list[Piece]:
    """The code in pieces; a string over several lines is only known where it begins."""
    pieces = []
    for token, part in _load(lexer).get_tokens(code):
        word = next((name for kind, name in _kinds() if token in kind), "")
        if part := part.rstrip("\n"):
            pieces.append((part, word))
    return pieces


@cache
def _load(lexer: str) -> Any:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(lexer, stripnl=False, ensurenl=False)


@cache
def _kinds() -> tuple[tuple[Any, str], ...]:
    from pygments.token import Comment, Keyword, Name, Number, String

    return (
        (Comment, "comment"),
        (Keyword, "keyword"),
        (Name.Tag, "keyword"),
        (String, "string"),
        (Number, "number"),
        (Name.Function, "function"),
        (Name.Class, "function"),
    )


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer `[lexer, code]` with pieces, a line each, until there are no more."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process, whatever it does
    for request in requests:
        lexer, code = json.loads(request)
        _load(lexer)
        signal.setitimer(signal.ITIMER_PROF, LINE_CPU_S)
        pieces = tell_apart(lexer, code)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(pieces).encode() + b"\n")
        answers.flush()


def main() -> None:
    import resource

    os.nice(5)
    with suppress(ValueError, OSError):  # where it cannot be limited, or is already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
