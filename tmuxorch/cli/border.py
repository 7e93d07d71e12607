"""Where exceptions become exit statuses: the only place of the command line that does."""

from __future__ import annotations

import os
import sys

from tmuxorch.errors import TmuxorchError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OK, FAILED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 3, 130
LOGS_KEPT = 20
LOG_MAX_CHARS = 100_000


def guarded(command: Callable[[], int | None], args: Sequence[str]) -> int:
    """Run the command; say what went wrong in one sentence and return the status."""
    as_json = wants_json(args)
    try:
        status = command() or OK
        sys.stdout.flush()
    except UsageError as e:
        complain(e.code, e.message, as_json=as_json)
        return USAGE
    except TmuxorchError as e:
        complain(e.code, e.message, as_json=as_json)
        return FAILED
    except KeyboardInterrupt:
        complain("interrupted", "interrupted", as_json=as_json)
        return INTERRUPTED
    except BrokenPipeError:
        return let_reader_go()
    except OSError as e:
        complain("os_error", _system_words(e), as_json=as_json)
        return FAILED
    except UnicodeEncodeError as e:  # a name that this system gave us as bytes
        where = os.fsencode(e.object)
        complain("bad_text", f"{where!r} is not valid UTF-8; rename it first", as_json=as_json)
        return FAILED
    except Exception as e:  # noqa: BLE001 -- the border: a bug must leave a log, not a traceback
        path = write_log(e, args)
        complain("bug", f"this is a bug in tmuxorch: {e!r}; the log is {path}", as_json=as_json)
        return BUG
    return status


def let_reader_go() -> int:
    """The reader has seen enough (`tmuxorch logs x | head`): no error, also not at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


def wants_json(args: Sequence[str]) -> bool:
    """Whether errors shall be JSON; what comes after `--` is an agent's own."""
    own = args[: args.index("--")] if "--" in args else args
    return "--json" in own


def complain(code: str, message: str, *, as_json: bool) -> None:
    if as_json:
        import json

        print(json.dumps({"error": {"code": code, "message": message}}), file=sys.stderr)
    else:
        sys.stderr.write(f"tmuxorch: {message}\n")


def _system_words(e: OSError) -> str:
    where = f" ({os.fsdecode(e.filename)})" if e.filename else ""
    return f"the system refused: {e.strerror or e}{where}; nothing more was done"


def write_log(e: BaseException, args: Sequence[str]) -> str:
    """Keep what a bug report needs; the path.

    The same bug has one log however often it is met, and only the newest few are kept.
    """
    import platform
    import traceback

    from tmuxorch import __version__

    text = "".join(
        [
            f"tmuxorch {__version__}, Python {platform.python_version()}, {platform.platform()}\n",
            f"command: {' '.join(args[:1])}\n\n",
            *traceback.format_exception(e),
        ]
    )
    frames = [(f.filename, f.lineno, f.name) for f in traceback.extract_tb(e.__traceback__)]
    try:
        directory = _logs()
        path = os.path.join(directory, f"bug-{_digest(f'{type(e)} {frames}')}.log")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o600), "w", errors="backslashreplace") as f:
            f.write(text[-LOG_MAX_CHARS:])
        _drop_oldest(directory)
    except (OSError, TmuxorchError) as trouble:
        return f"nowhere ({trouble})"
    return path


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def _logs() -> str:
    """The private directory for logs; a temporary one where the state directory is no use."""
    import tempfile

    from tmuxorch import paths

    try:
        directory = paths.state_dir(os.environ)
        paths.ensure_private(directory)
    except (OSError, TmuxorchError):
        directory = os.path.join(tempfile.gettempdir(), f"tmuxorch-{os.getuid()}")
        paths.ensure_private(directory)
        if os.stat(directory).st_uid != os.geteuid():
            raise TmuxorchError(f"{directory} is another user's") from None
    directory = os.path.join(directory, "logs")
    paths.ensure_private(directory)
    return directory


def _drop_oldest(directory: str) -> None:
    logs = [os.path.join(directory, n) for n in os.listdir(directory) if n.startswith("bug-")]
    logs.sort(key=lambda path: os.lstat(path).st_mtime_ns)
    for path in logs[:-LOGS_KEPT]:
        os.unlink(path)
