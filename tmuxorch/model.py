"""What tmuxorch knows, as frozen values; nothing here does anything.

`tmuxorch ls` imports this module, so it stays on the cheap side of the standard
library (no typing, no pathlib).
"""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from tmuxorch.values import dataclass


class AgentId(str):
    """Twelve hex digits; every external thing of an agent carries it."""

    __slots__ = ()


class WindowId(str):
    """tmux's `@n`."""

    __slots__ = ()


class PaneId(str):
    """tmux's `%n`."""

    __slots__ = ()


class State(StrEnum):
    """Where an agent is in its life; each change is a compare-and-swap."""

    CREATING = "creating"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"
    REMOVING = "removing"
    QUARANTINED = "quarantined"


class Status(StrEnum):
    """What a person is told an agent is doing.

    `stopped` is an end that a person asked for, `ended` one whose manner is not known (yet).
    """

    STARTING = "starting"
    WORKING = "working"
    WAITING = "waiting"
    IDLE = "idle"
    DONE = "done"
    STOPPED = "stopped"
    CRASHED = "crashed"
    ENDED = "ended"
    STRAY = "stray"
    LOST = "lost"
    UNKNOWN = "unknown"
    REMOVING = "removing"
    QUARANTINED = "quarantined"


class Kind(StrEnum):
    WORKER = "worker"
    PERSISTENT = "persistent"


class DeadPolicy(StrEnum):
    """What happens to an agent that ended by itself."""

    CLEAN = "clean"
    ALWAYS = "always"
    NEVER = "never"


class Reason(StrEnum):
    """Why an agent was removed."""

    USER = "user"
    FINISHED = "finished"
    CRASHED = "crashed"
    WINDOW_CLOSED = "window_closed"
    NEVER_STARTED = "never_started"
    LOST = "lost"
    CREATE_FAILED = "create_failed"
    SWEPT = "swept"


class Milestone(StrEnum):
    """What somebody who makes or removes an agent has reached, where it makes a difference."""

    BEGUN = ""
    BURIED = "buried"
    RESTORING = "restoring"


class EventKind(StrEnum):
    """What was done with an agent, as the decision log says it.

    Some are followed by what it was done to; see `Event.what`.
    """

    CREATING = "creating"
    STARTED = "started"
    CREATION_FAILED = "creation failed"
    ADOPTED = "adopted"
    RENAMED = "renamed"
    SEEN = "seen"
    ANSWERED = "answered"
    STOPPING = "stopping"
    STOPPED = "stopped"
    ENDED = "ended"
    LOST = "lost"
    WINDOW_CLOSED = "closed its window"
    TAKEN_OVER = "taken over"
    TAKEN_AS_ENDED = "taken as ended"
    RESTARTING = "restarting"
    RESTART_FAILED = "restart failed"
    RESUME_FAILED = "resume failed"
    DIED_AT_ONCE = "died at once"
    MERGED = "merged"
    KEPT_FOR_REVIEW = "kept for review"
    CLEANING_UP = "cleaning up"
    REMOVING = "removing"
    REMOVED = "removed"
    QUARANTINED = "quarantined"
    BRANCH_KEPT = "kept its branch"
    GIT_DIRECTORY_LEFT = "left git's directory of its worktree"
    TRASH_LEFT = "left files in the trash"
    RESTORED = "restored"
    RESTORE_FAILED = "restore failed"
    REBUILT = "rebuilt"
    COULD_NOT = "could not"
    SWEPT = "swept"
    SWEEP_FAILED = "could not sweep"
    DROPPED = "dropped"
    FINISHED = "finished"
    BRANCH_MENDED = "gave"
    LOCK_CLEARED = "cleared"
    SETTING_UNUSABLE = "a setting cannot be used"
    GOES_ON = "goes on"

    def of(self, subject: str) -> str:
        """What was done, and to what."""
        return f"{self} {subject}"


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process for all time: a reused pid is another ProcessId.

    `ticks` is the start time in clock ticks since boot (0 where the system has no
    /proc), `inode` the pidfd's inode (0 where the kernel gives none). `machine` tells a
    reboot from another machine that shares our files; it is empty where nobody knew.
    """

    boot: str
    namespace: int
    pid: int
    ticks: int
    inode: int
    machine: str = ""

    def __str__(self) -> str:
        where = f"@{self.machine}" if self.machine else ""
        return f"{self.boot}/{self.namespace}/{self.pid}/{self.ticks}/{self.inode}{where}"

    @classmethod
    def parse(cls, text: str) -> ProcessId:
        text, _, machine = text.partition("@")
        boot, namespace, pid, ticks, inode = text.split("/")
        return cls(boot, int(namespace), int(pid), int(ticks), int(inode), machine)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: exactly one of the two is set."""

    code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent's pane is: ids of one particular tmux server."""

    socket: str
    server: ProcessId
    session: str
    window: WindowId
    pane: PaneId


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that a question offers, and the key that stands for it."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent asks; without `choices` it is answered in words, or nobody knows how."""

    text: str
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """What was asked for and where it is worked on: the same in every run, and in the history.

    `id` is also the agent's and its history entry's. `branch_made` and `copied` say what
    tmuxorch itself put there (so it may take it away again), `conversation` what the next run
    goes on with.
    """

    id: AgentId
    name: str
    repo: str
    text: str
    agent: str
    kind: Kind
    branch: str
    branch_made: bool
    base: str
    base_commit: str
    worktree: str
    created_at: float
    command: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One life of the agent's program, or the last one: where it runs, and how it ended.

    `number` counts the restarts; `stopped` marks an end that a person asked for; `reported` is
    what the agent last said of itself, and when, `question` what it was last seen to ask.
    """

    socket: str
    number: int = 0
    place: Place | None = None
    process: ProcessId | None = None
    shim: ProcessId | None = None
    exit: Exit | None = None
    stopped: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    last_activity_at: float | None = None
    reported: Status | None = None
    reported_at: float | None = None
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """How far an agent's owner has got; of a restore also which entry it brings back."""

    reached: Milestone = Milestone.BEGUN
    entry: AgentId | None = None

    def __str__(self) -> str:
        return self.reached if self.entry is None else f"{self.reached}:{self.entry}"

    @classmethod
    def parse(cls, text: str) -> Step:
        reached, colon, entry = text.partition(":")
        return cls(Milestone(reached), AgentId(entry) if colon else None)


@dataclass(frozen=True, slots=True)
class Agent:
    """A task, its run, and where it stands: one row of the store.

    `admin` is where git keeps what belongs to the worktree (HEAD, index, logs), None if that
    was not recorded; `owner` is who is creating or removing it, `step` how far they got;
    `deaths` are the recent ends of a persistent agent, `restart_at` when it is to be started
    again (never, if None); `status_since` is when it got its status, by the store's own word.
    `damage` is no column: it says what of the row could not be read, and then nothing but
    showing follows from the rest.
    """

    task: Task
    run: Run
    state: State
    status: Status
    owner: ProcessId | None = None
    step: Step = Step()
    reason: Reason | None = None
    keep_branch: bool = False
    deaths: tuple[float, ...] = ()
    restart_at: float | None = None
    admin: str | None = None
    status_since: float | None = None
    damage: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the decision log: what was done with an agent, and the facts behind it.

    `what` is the kind, for some of them followed by what it was done to.
    """

    seq: int
    at: float
    agent: AgentId
    name: str
    what: str
    why: str

    @property
    def kind(self) -> EventKind | None:
        """None if it was written by a version that said it otherwise."""
        fits = [k for k in EventKind if self.what == k or self.what.startswith(f"{k} ")]
        return max(fits, key=len, default=None)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """What became of a removed agent."""

    task: Task
    head_commit: str | None
    reason: Reason
    exit: Exit | None
    removed_at: float
    duration_s: float
    commits: int | None
    files_changed: int | None
    insertions: int | None
    deletions: int | None
    salvage_ref: str | None
    archive: str | None
    branch_kept: bool
    restored_at: float | None
    last_screen: str | None
