"""One-shot tmux commands on one socket, each with a timeout.

A failure is always raised, never an empty answer. Targets are ids or `=exact` names, and
text that tmux would expand as a format is escaped before it gets here or never passed.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmuxorch.adapters.system.procfs import identify
from tmuxorch.adapters.system.run import Timeout, run
from tmuxorch.adapters.tmux.sockets import check_socket, make_directory
from tmuxorch.errors import TmuxFailed, TmuxMissing, TmuxNoServer, TmuxTimeout, TmuxTooOld
from tmuxorch.model import AgentId, PaneId, Place, ProcessId, WindowId

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MINIMUM_VERSION = (3, 2)
HOME_SESSION = "tmuxorch"
MARKER = "@tmuxorch_id"
_WIDTH, _HEIGHT = "200", "50"
DETACHED_SIZE = ("-x", _WIDTH, "-y", _HEIGHT)

_HOME_TEXT = (
    "tmuxorch keeps this session so that the tmux server stays up.\n"
    "The agents live in the sessions named tmuxorch-*; `tmuxorch` lists them.\n"
)
# A hundred commands at once may all find the session missing; all but one lose the race
# to make it and find it there on the next try.
_CREATE_TRIES = 5


@dataclass(frozen=True, slots=True)
class Pane:
    """What tmux says of a pane that carries our marker."""

    place: Place
    agent_id: AgentId
    pid: int
    dead: bool
    panes_in_window: int
    activity_at: float
    title: str = ""


_PANE_FIELDS = (
    *("pid", "window_id", "pane_id", "pane_pid", "pane_dead", "window_panes"),
    *("window_activity", MARKER),
)
TITLE_MAX = 200
# A session's name may have spaces, but tmux lets no colon into one; a title may have both.
_PANE_FORMAT = " ".join(
    [*(f"#{{{name}}}" for name in _PANE_FIELDS), f"#{{session_name}}:#{{={TITLE_MAX}:pane_title}}"]
)


class Tmux:
    """The tmux server behind one socket, which may or may not be up."""

    def __init__(self, socket: str, *, timeout_s: float = 10.0) -> None:
        self.socket = socket
        self.timeout_s = timeout_s
        self.program = find_program()

    def run(self, *args: str, stdin: bytes | None = None) -> str:
        """Run one tmux command (or a `;` sequence) and return its output."""
        check_socket(self.socket)
        # $TMUX may name another server; -S decides, and -u keeps non-ASCII output intact.
        argv = [self.program, "-u", "-S", self.socket, *args]
        try:
            done = run(argv, timeout_s=self.timeout_s, stdin=stdin, env=outside_environment())
        except Timeout as e:
            raise TmuxTimeout(
                f"tmux on {self.socket} did not answer within {self.timeout_s:g} s; "
                "nothing is known about its windows until it does"
            ) from e
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "surrogateescape")
        raise failure(args[0], self.socket, done.stderr.decode("utf-8", "replace").strip())

    def check_answers(self) -> None:
        """`TmuxTimeout` if a server is there and does not answer; none is fine if one can be."""
        make_directory(self.socket)
        with suppress(TmuxNoServer):
            self.run("list-sessions", "-F", "#{session_id}")

    # -- windows ----------------------------------------------------------------

    def create_window(
        self,
        agent_id: AgentId,
        *,
        session: str,
        name: str,
        cwd: str,
        argv: Sequence[str],
    ) -> Place:
        """Open a window for the agent, marked in the same call, and say where it is."""
        for attempt in range(_CREATE_TRIES):
            try:
                return self._new_window(agent_id, session, name, cwd, argv)
            except TmuxFailed as e:
                if not (isinstance(e, TmuxNoServer) or "can't find session" in e.stderr):
                    raise
            try:
                self.start_home()
                return self._new_session(agent_id, session, name, cwd, argv)
            except TmuxFailed as e:
                lost_the_race = "duplicate session" in e.stderr or isinstance(e, TmuxNoServer)
                if not lost_the_race or attempt == _CREATE_TRIES - 1:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _new_window(
        self, agent_id: AgentId, session: str, name: str, cwd: str, argv: Sequence[str]
    ) -> Place:
        # `{end}` is the window just appended: the server runs the whole sequence before
        # it looks at anybody else's command.
        end = f"={session}:{{end}}"
        command = ["new-window", "-d", "-a", "-t", end, *_window_arguments(name, cwd), *argv]
        return self._placed(self.run(*command, *_mark(agent_id, end)))

    def _new_session(
        self, agent_id: AgentId, session: str, name: str, cwd: str, argv: Sequence[str]
    ) -> Place:
        target = f"={session}:"
        command = ["new-session", "-d", "-s", session, *DETACHED_SIZE]
        command += [*_window_arguments(name, cwd), *argv]
        keep = [";", "set-option", "-t", target, "destroy-unattached", "off"]
        return self._placed(self.run(*command, *_mark(agent_id, target), *keep, *_resize(target)))

    def start_home(self) -> None:
        """Make the home session (and the server with it) unless it is there."""
        target = f"={HOME_SESSION}:"
        make_directory(self.socket)
        try:
            self.run(
                *("new-session", "-d", "-s", HOME_SESSION, "-n", "home", *DETACHED_SIZE),
                *("sh", "-c", 'printf %s "$1"; exec tail -f /dev/null', "home", _HOME_TEXT),
                *(";", "set-option", "-w", "-t", target, "remain-on-exit", "off"),
                *(";", "set-option", "-t", target, "destroy-unattached", "off"),
                # Agents must survive their person logging out.
                *(";", "set-option", "-s", "exit-unattached", "off"),
            )
        except TmuxFailed as e:
            if "duplicate session" not in e.stderr:
                raise

    def _placed(self, printed: str) -> Place:
        words = printed.split()
        if len(words) != 4:  # a socket that cannot be made: status 0, no word
            raise TmuxFailed(f"tmux made no window on {self.socket}; is its directory writable?")
        server, session, window, pane = words
        identity = identify(int(server))
        if identity is None:
            raise TmuxFailed(f"the tmux server on {self.socket} ended while making a window")
        return Place(self.socket, identity, session, WindowId(window), PaneId(pane))

    def close_pane(self, pane: Pane) -> None:
        """Close the pane if the same process still is in it; the window goes with its last."""
        self._if_same(pane, f"kill-pane -t {pane.place.pane}")

    def disown_pane(self, pane: Pane) -> None:
        """Take our marker from a pane in which a person has started something else."""
        self._if_same(pane, f"set-option -p -u -t {pane.place.pane} {MARKER}")

    def _if_same(self, pane: Pane, command: str) -> None:
        """Have it done in the moment in which marker and process were found to be those seen."""
        target = pane.place.pane
        marked = f"#{{==:#{{{MARKER}}},{pane.agent_id}}}"
        same = f"#{{&&:{marked},#{{==:#{{pane_pid}},{pane.pid}}}}}"
        try:
            self.run("if-shell", "-F", "-t", target, same, command)
        except TmuxFailed as e:
            if not (isinstance(e, TmuxNoServer) or "can't find" in e.stderr):
                raise

    # -- looks ------------------------------------------------------------------

    def panes(self, *, agent_id: AgentId | None = None) -> list[Pane]:
        """Every marked pane of the server, or those of one agent."""
        only = () if agent_id is None else (agent_id,)
        return read_panes(self.socket, self.run(*panes_query(only)))

    def find_pane(self, agent_id: AgentId) -> Pane | None:
        """The agent's pane wherever it was moved to; None if the server has none."""
        try:
            found = self.panes(agent_id=agent_id)
        except TmuxNoServer:
            return None
        return found[0] if found else None

    def capture(self, pane: PaneId, *, lines: int | None = None, escapes: bool = False) -> str:
        """The pane's screen, with up to `lines` lines of scrollback before it."""
        scroll = [] if lines is None else ["-S", f"-{lines}"]
        colours = ["-e"] if escapes else []
        return self.run("capture-pane", "-p", *colours, *scroll, "-t", pane)

    def paste(self, pane: PaneId, data: bytes, *, buffer: str) -> None:
        """Paste bytes as one message, also out of copy mode."""
        self.run(
            *("load-buffer", "-b", buffer, "-"),
            *(";", "copy-mode", "-q", "-t", pane),
            *(";", "paste-buffer", "-d", "-p", "-r", "-b", buffer, "-t", pane),
            stdin=data,
        )

    def press(self, pane: PaneId, key: str, *, while_shown: str = "") -> None:
        """Press a key by its name, or one letter or digit, as somebody at the keyboard would; only
        if in that very moment these words stand on the pane's screen.

        Words are letters, digits and single spaces: anything else means something to tmux.
        """
        leave_mode = f"copy-mode -q -t {pane}"
        is_name = len(key) > 1
        press = f"send-keys {'' if is_name else '-l '}-t {pane} {key}"
        if while_shown:
            shown = f"#{{C:{while_shown}}}"
            self.run("if-shell", "-F", "-t", pane, shown, f"{leave_mode} ; {press}")
        else:
            self.run(*leave_mode.split(), ";", *press.split())


def find_program() -> str:
    """The tmux to run, by absolute path."""
    program = shutil.which("tmux")
    if program is None:
        raise TmuxMissing("tmux is not installed or not on PATH; install tmux 3.2 or newer")
    return os.path.abspath(program)


def check_version(program: str) -> str:
    """What `tmux -V` says, or `TmuxTooOld`; development builds count as new."""
    try:
        said = run([program, "-V"], timeout_s=5.0).stdout.decode("utf-8", "replace").strip()
    except (Timeout, OSError) as e:
        raise TmuxMissing(f"{program} cannot be run ({e}); install tmux 3.2 or newer") from e
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers and (int(numbers[1]), int(numbers[2])) < MINIMUM_VERSION:
        raise TmuxTooOld(f"{said} is too old; tmuxorch needs tmux 3.2 or newer")
    return said


def panes_query(only: Collection[AgentId] = ()) -> list[str]:
    """The command that lists marked panes, of `only` these agents if any are named."""
    wanted = f"#{{{MARKER}}}"
    if len(only) == 1:
        wanted = f"#{{==:{wanted},{next(iter(only))}}}"
    elif only:
        wanted = f"#{{m/r:^({'|'.join(only)})$,{wanted}}}"
    return ["list-panes", "-a", "-f", wanted, "-F", _PANE_FORMAT]


def read_panes(socket: str, answer: str) -> list[Pane]:
    """The panes in the answer to `panes_query`; TmuxFailed if it is not a whole one."""
    servers: dict[str, ProcessId] = {}
    found = []
    for line in answer.splitlines():
        words = line.split(" ", len(_PANE_FIELDS))
        session, colon, title = words[-1].partition(":")
        if len(words) != len(_PANE_FIELDS) + 1 or not colon:
            raise TmuxFailed(f"tmux on {socket} gave an answer that cannot be read: {line[:80]!r}")
        pid, window, pane, pane_pid, dead, panes, activity, marker = words[:-1]
        if pid not in servers:
            server = identify(int(pid))
            if server is None:
                raise TmuxFailed(f"the tmux server on {socket} ended while being asked")
            servers[pid] = server
        found.append(
            Pane(
                place=Place(socket, servers[pid], session, WindowId(window), PaneId(pane)),
                agent_id=AgentId(marker),
                pid=int(pane_pid),
                dead=dead == "1",
                panes_in_window=int(panes),
                activity_at=float(activity or 0),
                title=title,
            )
        )
    return found


def _window_arguments(name: str, cwd: str) -> list[str]:
    return [
        *("-n", name, "-c", cwd.replace("#", "##")),
        *("-P", "-F", "#{pid} #{session_name} #{window_id} #{pane_id}"),
    ]


def _mark(agent_id: AgentId, target: str) -> list[str]:
    options = []
    for option in ("remain-on-exit", "automatic-rename", "allow-rename"):
        options += [";", "set-option", "-w", "-t", target, option, "off"]
    return [*options, ";", "set-option", "-p", "-t", target, MARKER, agent_id]


def _resize(target: str) -> list[str]:
    """Give a first window its size, which tmux 3.2 takes from a terminal that is not there."""
    asked = f"resize-window -t {target} -x {_WIDTH} -y {_HEIGHT}"
    # Without the second the window would keep that size whoever looks at it.
    free = f"set-option -w -u -t {target} window-size"
    has_size = f"#{{==:#{{window_width}}x#{{window_height}},{_WIDTH}x{_HEIGHT}}}"
    return [";", "if-shell", "-F", "-t", target, has_size, "", f"{asked} ; {free}"]


def outside_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("TMUX", "TMUX_PANE")}


def failure(command: str, socket: str, stderr: str) -> TmuxFailed:
    gone = ("no server running", "error connecting", "server exited", "lost server")
    if any(phrase in stderr for phrase in gone):
        return TmuxNoServer(f"no tmux server answers on {socket} ({stderr})", stderr=stderr)
    last = stderr.splitlines()[-1] if stderr else "no message"
    return TmuxFailed(f"tmux {command} failed on {socket}: {last}", stderr=stderr)
