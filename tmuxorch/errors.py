"""Every failure a person can meet, as one tree that imports nothing; `Impossible` is none.

`code` is what scripts match on (`--json` prints it); the message is one sentence
that says what failed, what was left untouched and what to do next.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Value = TypeVar("Value")


class TmuxorchError(Exception):
    """An expected failure: exit status 1, no traceback."""

    code = "failed"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UsageError(TmuxorchError):
    """The command was spelled wrong: exit status 2."""

    code = "usage"


class UnknownName(TmuxorchError):
    code = "unknown_name"


class AmbiguousName(TmuxorchError):
    code = "ambiguous_name"


class NameTaken(TmuxorchError):
    code = "name_taken"


class BadName(TmuxorchError):
    code = "bad_name"


class BadText(TmuxorchError):
    code = "bad_text"


class NoRepository(TmuxorchError):
    code = "no_repository"


class GitFailed(TmuxorchError):
    """git said no; carries what was asked and what it answered."""

    code = "git_failed"

    def __init__(self, message: str, *, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr


class GitKilled(GitFailed):
    """git was ended by a signal: nothing is known, and what it was to change may be half done."""

    code = "git_killed"


class GitTooOld(GitFailed):
    code = "git_too_old"


class MergeConflict(GitFailed):
    """Both sides changed the same places; carries the files, relative to the worktree's top."""

    code = "merge_conflict"

    def __init__(self, message: str, *, files: tuple[str, ...]) -> None:
        super().__init__(message)
        self.files = files


class CannotMerge(TmuxorchError):
    """Something stands in the way of a merge; nothing was changed."""

    code = "cannot_merge"


class SetupFailed(TmuxorchError):
    code = "setup_failed"


class TmuxMissing(TmuxorchError):
    code = "tmux_missing"


class TmuxTooOld(TmuxorchError):
    code = "tmux_too_old"


class TmuxTimeout(TmuxorchError):
    """The server did not answer in time: nothing is known about it."""

    code = "tmux_timeout"


class TmuxFailed(TmuxorchError):
    """tmux answered, and the answer was an error."""

    code = "tmux_failed"

    def __init__(self, message: str, *, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr


class TmuxNoServer(TmuxFailed):
    """Nothing listens on the socket (which is not proof that no server lives)."""

    code = "tmux_no_server"


class SocketUnsafe(TmuxFailed):
    """Another user made, or could replace, the socket: whoever connects hands over its secrets."""

    code = "socket_unsafe"


class StartFailed(TmuxorchError):
    """The agent's program could not be started, or ended with an error at once."""

    code = "start_failed"


class NotRunning(TmuxorchError):
    code = "not_running"


class AgentAsks(TmuxorchError):
    """The agent has a question open, which a message could answer by accident."""

    code = "waiting"


class QuestionChanged(TmuxorchError):
    """What the agent asks is not what was to be answered."""

    code = "question_changed"


class NotReady(TmuxorchError):
    """The agent takes no message now; nothing was pasted."""

    code = "not_ready"


class NotDelivered(TmuxorchError):
    """The message was pasted and not seen to be taken; says what is left in the input box."""

    code = "not_delivered"


class WorkAtStake(TmuxorchError):
    code = "work_at_stake"


class CannotSave(TmuxorchError):
    """Work could not be saved for certain, so nothing was deleted."""

    code = "cannot_save"


class CannotRestore(TmuxorchError):
    """What was saved of a worker is not all there any more; nothing was made."""

    code = "cannot_restore"


class CannotSee(TmuxorchError):
    """Whether it lives cannot be told from here, so nothing was done about it."""

    code = "cannot_see"


class StateConflict(TmuxorchError):
    """Somebody else changed the agent's state first."""

    code = "state_conflict"


class StoreUnusable(TmuxorchError):
    code = "store_unusable"


class StoreDamaged(StoreUnusable):
    """What is there is no store, or not a whole one: waiting, room or rights will not help."""


class ConfigInvalid(TmuxorchError):
    code = "config_invalid"


class NotTrusted(TmuxorchError):
    code = "not_trusted"


class NeedsTerminal(TmuxorchError):
    code = "needs_terminal"


class Impossible(Exception):
    """What the code rules out has happened: a bug, and nothing is built on it."""


def sure(value: "Value | None", why: str) -> "Value":
    """The value, which cannot be missing; `why` not. For all that a wrong guess would harm."""
    if value is None:
        raise Impossible(f"nothing is there, but {why}")
    return value
