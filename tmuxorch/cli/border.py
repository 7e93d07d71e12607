"""Where exceptions become exit statuses: the only place of the command line that does."""

from __future__ import annotations

import os
import sys

from tmuxorch.errors import TmuxorchError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OK, FAILED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 3, 130


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


def write_log(e: Exception, args: Sequence[str]) -> str:
    """Keep what a bug report needs; the path."""
    import platform
    import tempfile
    import traceback

    from tmuxorch import __version__, paths

    text = "".join(
        [
            f"tmuxorch {__version__}, Python {platform.python_version()}, {platform.platform()}\n",
            f"command: {' '.join(args[:1])}\n\n",
            *traceback.format_exception(e),
        ]
    )
    try:
        directory = os.path.join(paths.state_dir(os.environ), "logs")
        paths.ensure_private(paths.state_dir(os.environ))
        paths.ensure_private(directory)
    except (OSError, TmuxorchError):
        directory = tempfile.gettempdir()
    fd, path = tempfile.mkstemp(prefix="bug-", suffix=".log", dir=directory)
    with open(fd, "w") as f:
        f.write(text)
    return path
