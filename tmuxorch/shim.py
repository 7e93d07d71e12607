"""The pane's root process: starts the agent, tells how it went, leaves nothing behind.

It runs alone under `python -I -S` and lives as long as the window, so it imports only
modules that cost next to nothing. `command()` gives the line that starts it, the
launch format below is what its creator writes.

In the run directory it reads `launch` and writes `started` and `exit`, each whole or
not at all; after each it puts a byte into the FIFO `ready`, if there is one.
"""

import errno
import os
import select
import sys
import termios
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    try:
        import _signal as signal  # the C part only: `signal` builds enums for 3.5 ms
    except ImportError:
        import signal

# A script is compiled at every start, for 3 ms; an imported module is cached.
BOOT = "import sys; sys.path.append(sys.argv.pop(1)); import shim; shim.main()"

# How the terminal names itself is for the pane to say, not for whoever wrote the launch.
PANE_ENV = (b"TERM", b"TMUX", b"TMUX_PANE", b"COLORTERM", b"TERM_PROGRAM", b"TERM_PROGRAM_VERSION")

STOPPED_S = 0.1  # an agent that stops itself is continued after this long, so cannot spin
ROUND_S = 0.1  # between two looks for descendants when no child's end wakes us
KILL_S = 5.0  # what survives KILL this long is another user's or stuck in the kernel
NOTE_S = 1.0  # a held pane is left as it was this long for the watcher to read
BURST_S = 0.05  # bytes closer together than this are a paste, not a key
DRAIN_S = 1.0  # a terminal that takes nothing this long (stopped server) is not written to

NOTE = "press q to close this window"
LET_GO = (b"q", b"\x03", b"\x04")  # q, Ctrl-C, Ctrl-D

# Mouse, focus, bracketed paste, synchronised output, both extended keyboards (xterm's,
# kitty's), application cursor and keypad off, cursor on. None of them moves or draws.
CALM = (
    b"\033[?9;1000;1002;1003;1005;1006;1004;2004;2026l"
    b"\033[>4m\033[<99u\033[=0u\033[?1l\033>\033[?25h"
)
# Whole screen, plain text, one line on if the cursor is on the last one (so that a last
# line of error is scrolled, not overwritten), then the bottom line without wrapping.
BOTTOM = b"\0337\033[?6l\033[r\0338\033(B\017\033[4l\033[0m\n\033[999;1H\033[2K\033[?7l\033[2m"
BOTTOM_END = b"\033[0m\033[?7h"


def command(run_dir: str) -> list[str]:
    """The command line that starts the shim on a run directory."""
    package = os.path.dirname(os.path.abspath(__file__))
    return [sys.executable, "-I", "-S", "-c", BOOT, package, run_dir]


def encode_launch(pairs: list[tuple[str, bytes]]) -> bytes:
    """The content of a launch file: `key NUL value NUL`, keys in any order, some repeated.

    `arg` and `env` (`NAME=value`) are repeated; `cwd`, `stdin` (a file to read instead
    of the terminal), `grace_ms`, `machine` and `run` (both are repeated in what is reported)
    come once. Raises ValueError if a value holds a NUL.
    """
    for key, value in pairs:
        if b"\0" in value:
            raise ValueError(f"{key}: a NUL byte cannot be passed to a program")
    return b"".join(key.encode("ascii") + b"\0" + value + b"\0" for key, value in pairs)


def decode_launch(data: bytes) -> list[tuple[str, bytes]]:
    """The pairs that `encode_launch` was given; ValueError if the file is cut short."""
    fields = data.split(b"\0")
    if fields.pop() or len(fields) % 2:
        raise ValueError("the launch file is cut short")
    return [
        (key.decode("ascii"), value) for key, value in zip(fields[::2], fields[1::2], strict=True)
    ]


class Launch:
    """What to start and how; ValueError if there is nothing to start."""

    def __init__(self, pairs: list[tuple[str, bytes]]) -> None:
        once = dict(pairs)
        self.argv = [value for key, value in pairs if key == "arg"]
        if not self.argv:
            raise ValueError("the launch file names no program")
        self.cwd = once.get("cwd")
        self.stdin = once.get("stdin")
        self.grace_s = int(once.get("grace_ms", b"2000")) / 1000
        self.machine = once.get("machine", b"").decode("ascii")
        self.run = once.get("run", b"").decode("ascii")
        self.env: dict[bytes, bytes] = {}
        for key, value in pairs:
            name, equals, content = value.partition(b"=")
            if key == "env" and name and equals:
                self.env[name] = content
        self.env |= {name: os.environb[name] for name in PANE_ENV if name in os.environb}
        self.name = _printable(os.fsdecode(self.env.get(b"TMUXORCH_NAME", b"the agent")))


def process_id(pid: int, machine: str) -> str:
    """`boot/namespace/pid/ticks/inode@machine`, as `tmuxorch.model.ProcessId` has it.

    Where the system has no /proc: `-` and 0, and for ticks the time at which it surely ran,
    in hundredths of a second since 1970.
    """
    boot, namespace, ticks, inode = "-", 0, int(time.time() * 100), 0
    try:
        boot = _read("/proc/sys/kernel/random/boot_id").decode().strip()
        namespace = os.stat("/proc/self/ns/pid").st_ino
        ticks = _parent_and_ticks(pid)[1]
        pidfd = os.pidfd_open(pid)
    except (OSError, AttributeError):
        pass
    else:
        inode = os.fstat(pidfd).st_ino
        os.close(pidfd)
    where = f"@{machine}" if machine else ""
    return f"{boot}/{namespace}/{pid}/{ticks}/{inode}{where}"


def become_subreaper() -> bool:
    """Make orphaned descendants come back to this process; False where it cannot be done."""
    if sys.platform != "linux":
        return False
    try:
        import _ctypes  # may be missing; the ctypes package costs 2 ms more

        this_program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
        prctl = _ctypes.dlsym(this_program, "prctl")
        return bool(_ctypes.call_function(prctl, (36, 1)) == 0)  # PR_SET_CHILD_SUBREAPER
    except (ImportError, AttributeError, OSError):
        return False


def descendants(is_subreaper: bool) -> dict[int, int]:
    """Every process below this one, with its start ticks.

    Without a subreaper an orphan is nobody's: then those of our session count as well.
    """
    root = os.getpid()
    processes = _processes() if os.path.exists("/proc/self/stat") else _processes_by_ps()
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in processes.items():
        children.setdefault(parent, []).append(pid)
    found = [root]
    if not is_subreaper:
        found += [pid for pid in processes if _session(pid) == root]
    for pid in found:
        found += children.pop(pid, ())  # popped: the table is no snapshot, it may hold a ring
    return {pid: processes[pid][1] for pid in found if pid != root}


def send(pid: int, ticks: int, *numbers: int) -> None:
    """Signal that very process, unless it has ended or belongs to someone else."""
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, AttributeError):
        pidfd = -1  # gone, or no pidfds here: then the pid itself, checked just before
    try:
        if ticks and _parent_and_ticks(pid)[1] != ticks:
            return
        for number in numbers:
            if pidfd >= 0:
                signal.pidfd_send_signal(pidfd, number)
            else:
                os.kill(pid, number)
    except OSError:
        pass
    finally:
        if pidfd >= 0:
            os.close(pidfd)


def _processes() -> dict[int, tuple[int, int]]:
    """Parent and start ticks of every process.

    Not from `task/*/children`: kernels are built without it, and it may skip a child
    while another one ends.
    """
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found[int(name)] = _parent_and_ticks(int(name))
            except OSError:
                continue
    return found


def _processes_by_ps() -> dict[int, tuple[int, int]]:
    """The same where there is no /proc; start ticks are 0."""
    reading, writing = os.pipe()
    ps = os.posix_spawn(
        "/bin/ps",
        ["ps", "-axo", "pid=,ppid="],
        {},
        file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)],
    )
    os.close(writing)
    numbers = [int(word) for word in _read_all(reading).split()]
    os.waitpid(ps, 0)
    found = {pid: (parent, 0) for pid, parent in zip(numbers[::2], numbers[1::2], strict=False)}
    found.pop(ps, None)
    return found


def _parent_and_ticks(pid: int) -> tuple[int, int]:
    # The program's name comes first, in parentheses, and may itself hold `) `.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[1]), int(fields[19])


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def become_agent(launch: Launch, failure: int) -> None:
    """Turn this new process into the agent, or write why not to `failure`; never returns.

    Called with all signals blocked, so nothing meant for the agent runs a handler of
    the shim's, and taking the terminal from the background does not stop it.
    """
    what = b""
    try:
        os.setpgid(0, 0)
        if os.isatty(0):
            os.tcsetpgrp(0, os.getpid())
        if launch.cwd is not None:
            what = launch.cwd
            os.chdir(launch.cwd)
        if launch.stdin is not None:
            what = launch.stdin
            os.dup2(os.open(launch.stdin, os.O_RDONLY), 0)
        os.closerange(3, failure)
        os.closerange(failure + 1, 4096)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        what = launch.argv[0]
        os.execve(launch.argv[0], launch.argv, launch.env)
    except (OSError, ValueError) as error:
        code = getattr(error, "errno", None) or errno.EINVAL
        os.write(failure, b"%d %s" % (code, what))
    finally:
        os._exit(127)


class Shim:
    """One agent's keeper: `start`, `attend`, `sweep`, `hold`, in this order."""

    def __init__(self, run_dir: str, launch: Launch) -> None:
        self.run_dir = run_dir
        self.name = launch.name
        self.grace_s = launch.grace_s
        self.run = launch.run
        self.began_at = time.monotonic()
        self.agent = 0  # its pid, 0 before the start and once it is reaped
        self.ended = ""  # first line of `exit` once that is written
        self.leaving = False  # HUP or TERM came
        self.continue_at: float | None = None  # when to continue a stopped agent
        self.is_subreaper = become_subreaper()
        self.woken = _listen()
        try:
            # Its own open file: non-blocking for us only, and no matter what 0-2 are.
            self.tty = os.open("/dev/tty", os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            self.tty = -1

    def start(self, launch: Launch) -> None:
        """Run the agent as the terminal's foreground job, and record that or the error.

        The pipe closes when the program is executed, so `started` means it really runs,
        and what the child did before (group, terminal) needs no repetition here.
        """
        reading, writing = os.pipe()
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        self.agent = os.fork()
        if self.agent == 0:
            become_agent(launch, writing)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.close(writing)
        failure = _read_all(reading)
        if failure:
            os.waitpid(self.agent, 0)
            self.agent = 0
            number, _, what = failure.partition(b" ")
            error = f"{os.fsdecode(what)}: {os.strerror(int(number))}"
            self.record_end(f"error {errno.errorcode.get(int(number), 'EINVAL')} {error}")
            self.say(f"[tmuxorch] {self.name} could not be started: {_printable(error)}\r\n")
        else:
            agent, shim = (process_id(pid, launch.machine) for pid in (self.agent, os.getpid()))
            run = f"run {self.run}\n" if self.run else ""
            _put(self.run_dir, "started", f"agent {agent}\nshim {shim}\nat {time.time()}\n{run}")

    def attend(self) -> None:
        """Wait until the agent has ended or this process is told to go.

        An agent that is stopped (Ctrl-Z) would leave the window dead: it is continued.
        """
        while not self.ended and not self.leaving:
            if self.continue_at is None:
                self.wait(None)
            else:
                self.wait(self.continue_at - time.monotonic())
            self.reap()
            if self.continue_at is not None and time.monotonic() >= self.continue_at:
                self.resume()

    def resume(self) -> None:
        """Continue a stopped agent, and its group, as the terminal's foreground job."""
        self.continue_at = None
        self.give_terminal(self.agent)
        try:
            os.killpg(os.getpgid(self.agent), signal.SIGCONT)
        except OSError:
            return  # it runs as another user now

    def sweep(self) -> None:
        """End every descendant, the agent too if it runs: TERM, the grace, KILL.

        Returns as soon as none is left, or KILL_S after the first KILL.
        """
        told: set[tuple[int, int]] = set()
        kill_at = time.monotonic() + self.grace_s
        while not self.is_alone():
            now = time.monotonic()
            if now > kill_at + KILL_S:
                return
            for process in descendants(self.is_subreaper).items():
                if now >= kill_at:
                    send(*process, signal.SIGKILL)
                elif process not in told:  # once: to many programs a second TERM is a KILL
                    told.add(process)
                    send(*process, signal.SIGTERM, signal.SIGCONT)
            self.wait(min(ROUND_S, kill_at - now) if now < kill_at else ROUND_S)

    def hold(self) -> None:
        """Keep the pane and its last screen until a key, HUP or TERM lets it go."""
        note_at: float | None = time.monotonic() + NOTE_S
        while not self.leaving and self.tty >= 0:
            timeout_s = None if note_at is None else note_at - time.monotonic()
            if self.tty in self.wait(timeout_s, self.tty):
                typed = self.read_burst()
                if typed is None or typed in LET_GO:
                    return
            self.reap()
            if note_at is not None and time.monotonic() >= note_at:
                note_at = None
                note = f"[tmuxorch] {self.name} {_how(self.ended)} - {NOTE}"
                self.say(BOTTOM + note.encode() + BOTTOM_END)

    def wait(self, timeout_s: float | None, *fds: int) -> list[int]:
        """Sleep until a signal, the timeout, or something to read; returns what to read."""
        timeout_s = None if timeout_s is None else max(0.0, timeout_s)
        readable: list[int] = select.select([self.woken, *fds], [], [], timeout_s)[0]
        if self.woken in readable:
            heard = os.read(self.woken, 4096)
            self.leaving = self.leaving or signal.SIGHUP in heard or signal.SIGTERM in heard
        return readable

    def reap(self) -> bool:
        """Collect every ended child, recording the agent's end; False if none is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.agent and os.WIFSTOPPED(status):
                self.continue_at = time.monotonic() + STOPPED_S
            elif pid == self.agent:
                self.agent = 0  # from here on the pid may be another's
                self.continue_at = None
                if os.WIFSIGNALED(status):
                    self.record_end(f"signal {os.WTERMSIG(status)}")
                else:
                    self.record_end(f"code {os.WEXITSTATUS(status)}")

    def is_alone(self) -> bool:
        """Whether no descendant is left; to a subreaper no child means just that."""
        if self.reap():
            return False
        return self.is_subreaper or not (descendants(False) or descendants(False))

    def record_end(self, how: str) -> None:
        self.ended = _printable(how)
        lived = f"run {self.run}\nlived_s {time.monotonic() - self.began_at}\n" if self.run else ""
        _put(self.run_dir, "exit", f"{self.ended}\nat {time.time()}\n{lived}")

    def give_terminal(self, pid: int) -> None:
        try:
            os.tcsetpgrp(self.tty, os.getpgid(pid))
        except OSError:
            return  # it is gone with its window

    def take_terminal(self) -> None:
        """Have input go nowhere, and undo what a killed full-screen program left on.

        No visible cell changes, and the alternate screen stays.
        """
        self.give_terminal(os.getpid())
        try:
            mode = termios.tcgetattr(self.tty)
            mode[0] = mode[3] = 0  # no flow control (resumes a Ctrl-S), signals, echo, lines
            mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self.tty, termios.TCSANOW, mode)
            termios.tcflush(self.tty, termios.TCIFLUSH)  # typed for the agent, not for us
        except (termios.error, OSError, ValueError):
            return  # the terminal is gone
        self.say(CALM)

    def say(self, text: str | bytes) -> None:
        """Write to the terminal as far as it takes it; one that is gone is no error."""
        data = text.encode() if isinstance(text, str) else text
        try:
            while data and self.tty >= 0 and select.select([], [self.tty], [], DRAIN_S)[1]:
                data = data[os.write(self.tty, data) :]
        except OSError:
            pass

    def read_burst(self) -> bytes | None:
        """The first two bytes of what was typed in one go; None if the terminal is gone."""
        burst = b""
        try:
            while chunk := os.read(self.tty, 4096):
                burst = (burst + chunk)[:2]
                if self.tty not in self.wait(BURST_S, self.tty):
                    return burst
        except BlockingIOError:
            return burst
        except OSError:
            pass
        return None


def main() -> None:
    """Live one agent's life; ends the process."""
    run_dir = sys.argv[1]
    for name in ("started", "exit"):
        try:
            os.unlink(os.path.join(run_dir, name))
        except OSError:
            continue
    try:
        launch = Launch(decode_launch(_read(os.path.join(run_dir, "launch"))))
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None) or errno.EINVAL
        reason = _printable(getattr(error, "strerror", None) or str(error))
        _put(run_dir, "exit", f"error {errno.errorcode[number]} {reason}\nat {time.time()}\n")
        os.write(2, f"[tmuxorch] cannot read what to start in {run_dir!r}: {reason}\n".encode())
        os._exit(1)
    shim = Shim(run_dir, launch)
    shim.start(launch)
    del launch
    shim.attend()
    if not shim.leaving:
        shim.take_terminal()
    shim.sweep()
    if not shim.leaving:
        shim.take_terminal()  # again: a swept program may have set it back on its way out
        shim.hold()
    os._exit(0)


def _listen() -> int:
    """A descriptor that gives a byte for each signal; the keyboard's are ignored from now on."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    return reading


def _put(run_dir: str, name: str, text: str) -> None:
    """Write a file whole, then wake its reader; a run directory that is gone is no error."""
    path = os.path.join(run_dir, name)
    try:
        _write(path + ".tmp", os.O_CREAT | os.O_TRUNC, text.encode())
        os.rename(path + ".tmp", path)
        _write(os.path.join(run_dir, "ready"), os.O_NONBLOCK, b".")
    except OSError:
        pass  # nobody waits there, or nobody wants to know any more


def _write(path: str, flags: int, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | flags, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def _read(path: str) -> bytes:
    return _read_all(os.open(path, os.O_RDONLY))


def _read_all(fd: int) -> bytes:
    """All that is left in `fd`, which is closed."""
    try:
        return b"".join(iter(lambda: os.read(fd, 65536), b""))
    finally:
        os.close(fd)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def _how(ended: str) -> str:
    """The first line of `exit` as people say it."""
    what, _, number = ended.partition(" ")
    if what == "code":
        return f"ended with exit code {number}"
    if what == "signal":
        names = [name for name in dir(signal) if name.startswith("SIG") and "_" not in name]
        named = [name for name in names if getattr(signal, name) == int(number)]
        return f"was ended by {named[0] if named else ended}"
    return "did not start"


if __name__ == "__main__":
    main()
