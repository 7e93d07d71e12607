"""The shim in a real tmux: what the agent, the pane and the run directory see of it."""

from __future__ import annotations

import errno
import itertools
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from tests.conftest import needs
from tmuxorch import shim
from tmuxorch.model import ProcessId

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

T = TypeVar("T")
DEADLINE_S = 20.0
FLAGS = (
    "#{mouse_any_flag}#{mouse_sgr_flag}#{keypad_cursor_flag}#{keypad_flag}"
    " cursor=#{cursor_flag} alternate=#{alternate_on}"
)
_tokens = itertools.count(1)


def eventually(look: Callable[[], T], what: str) -> T:
    """The first true answer of `look`."""
    deadline = time.monotonic() + DEADLINE_S
    while not (answer := look()):
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}"
        time.sleep(0.005)
    return answer


def is_running(pid: int) -> bool:
    """Neither gone nor a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def status_field(pid: int, field: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(field + ":"))


def times_slept(pid: int) -> int:
    return int(status_field(pid, "voluntary_ctxt_switches"))


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[11]) + int(fields[12])


def burn_cpu(ticks: int) -> None:
    """Work until this process has used that many clock ticks."""
    until = cpu_ticks(os.getpid()) + ticks
    while cpu_ticks(os.getpid()) < until:
        sum(range(10_000))


def new_token() -> str:
    """A number of seconds that no other `sleep` on this machine sleeps."""
    return f"98765.{os.getpid()}{next(_tokens):04d}"


def sleepers(token: str) -> list[int]:
    """The running `sleep` processes with that token."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if words[:2] == [b"sleep", token.encode()] and is_running(int(entry.name)):
            found.append(int(entry.name))
    return found


class Agent:
    """One shim in its window."""

    def __init__(self, tmux: Tmux, run_dir: Path, window: str, pane: str, shim_pid: int) -> None:
        self.tmux, self.run_dir, self.window, self.pane = tmux, run_dir, window, pane
        self.shim_pid = shim_pid

    def report(self, name: str) -> dict[str, str]:
        """A file of the run directory, once it is there."""
        path = self.run_dir / name
        eventually(path.exists, f"{name} is written")
        assert path.stat().st_mode & 0o777 == 0o600
        return dict(line.split(" ", 1) for line in path.read_text().splitlines())

    def has_ended(self) -> bool:
        return (self.run_dir / "exit").exists()

    def ended(self) -> str:
        """The first line of `exit`, whose second line is the time."""
        how, at = [f"{key} {value}" for key, value in self.report("exit").items()]
        assert abs(float(at.removeprefix("at ")) - time.time()) < 3600
        return how

    @property
    def pid(self) -> int:
        return ProcessId.parse(self.report("started")["agent"]).pid

    def screen(self) -> str:
        return self.tmux.run("capture-pane", "-p", "-t", self.pane)

    def flags(self) -> str:
        return self.tmux.run("display-message", "-p", "-t", self.pane, FLAGS).strip()

    def shows(self, text: str) -> None:
        try:
            eventually(lambda: text in self.screen(), f"{text!r} on the screen")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None

    def keys(self, *keys: str) -> None:
        self.tmux.run("send-keys", "-t", self.pane, *keys)

    def paste(self, text: str) -> None:
        self.tmux.run("load-buffer", "-", stdin=text)
        self.tmux.run("paste-buffer", "-d", "-t", self.pane)

    def kill_window(self) -> None:
        self.tmux.run("kill-window", "-t", self.window)

    def is_open(self) -> bool:
        return self.pane in self.tmux.run("list-panes", "-a", "-F", "#{pane_id}").split()

    def closes(self) -> None:
        eventually(lambda: not is_running(self.shim_pid), "the shim ends")
        eventually(lambda: not self.is_open(), "the window closes")

    def is_held(self) -> None:
        self.shows("press q to close this window")


class Tmux:
    """A private server with a private home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.shims: list[int] = []
        self.run("new-session", "-d", "-x", "100", "-y", "24", "cat")
        self.pid = int(self.run("display-message", "-p", "#{pid}"))

    def run(self, *args: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-f", "/dev/null", "-S", str(self.home / "s"), *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
            env={
                "HOME": str(self.home),
                "PATH": os.environ["PATH"],
                "LANG": "C.UTF-8",
                "SHELL": "/bin/sh",
            },
        )
        assert done.returncode == 0, f"tmux {args}: {done.stderr}"
        return done.stdout

    def run_dir(self) -> Path:
        path = Path(tempfile.mkdtemp(prefix="run", dir=self.home))
        os.mkfifo(path / "ready", 0o600)
        return path

    def start(
        self,
        *argv: str | bytes,
        run_dir: Path | None = None,
        command: list[str] | None = None,
        env: tuple[bytes, ...] = (),
        settings: dict[str, str] | None = None,
    ) -> Agent:
        run_dir = run_dir or self.run_dir()
        pairs = [("arg", os.fsencode(arg)) for arg in argv]
        pairs += [("env", entry) for entry in (*self.env(), *env)]
        pairs += [(key, value.encode()) for key, value in ({"cwd": "/"} | (settings or {})).items()]
        (run_dir / "launch").write_bytes(shim.encode_launch(pairs))
        ids = "#{window_id} #{pane_id} #{pane_pid}"
        line = [*(command or shim.command("")[:-1]), str(run_dir)]
        window, pane, pid = self.run("new-window", "-d", "-P", "-F", ids, *line).split()
        self.shims.append(int(pid))
        return Agent(self, run_dir, window, pane, int(pid))

    def env(self) -> tuple[bytes, ...]:
        return (
            b"PATH=" + os.environb[b"PATH"],
            b"HOME=" + os.fsencode(self.home),
            b"LANG=C.UTF-8",
            b"TMUXORCH_NAME=fix-login",
        )

    def close(self) -> None:
        """End the server; its shims must go with it."""
        subprocess.run(
            ["tmux", "-S", str(self.home / "s"), "kill-server"], check=False, capture_output=True
        )
        eventually(lambda: not is_running(self.pid), "the tmux server is gone")
        eventually(lambda: not any(map(is_running, self.shims)), "the shims go with their server")


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    home = Path(tempfile.mkdtemp(prefix="shim", dir="/tmp"))
    server = Tmux(home)
    try:
        yield server
    finally:
        server.close()
        shutil.rmtree(home)


# What is started


def test_a_launch_file_gives_back_what_was_put_in() -> None:
    pairs = [("arg", b""), ("arg", b"a\nb\xff"), ("env", b"A=b=c"), ("whatever", b"x")]
    assert shim.decode_launch(shim.encode_launch(pairs)) == pairs
    assert shim.decode_launch(b"") == []


@pytest.mark.parametrize("data", [b"arg", b"arg\0", b"arg\0/bin/tr", b"arg\0x\0env\0"])
def test_a_launch_file_cut_short_is_not_taken_for_a_whole_one(data: bytes) -> None:
    with pytest.raises(ValueError, match="cut short"):
        shim.decode_launch(data)


def test_a_nul_byte_cannot_be_smuggled_into_a_launch_file() -> None:
    with pytest.raises(ValueError, match="NUL"):
        shim.encode_launch([("arg", b"a\0env\0PATH=/evil")])


def test_the_identities_reported_are_the_kernels(tmux: Tmux) -> None:
    def truth(pid: int) -> ProcessId:
        pidfd = os.pidfd_open(pid)
        inode = os.fstat(pidfd).st_ino
        os.close(pidfd)
        return ProcessId(
            boot=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            namespace=Path(f"/proc/{pid}/ns/pid").stat().st_ino,
            pid=pid,
            ticks=int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]),
            inode=inode,
        )

    odd_name = tmux.home / "a) R 1 1"
    shutil.copy("/bin/sleep", odd_name)
    before = time.time()
    agent = tmux.start(str(odd_name), "1000")
    started = agent.report("started")
    [child] = psutil.Process(agent.shim_pid).children()
    assert started["agent"] == str(truth(child.pid))
    assert started["shim"] == str(truth(agent.shim_pid))
    assert before <= float(started["at"]) <= time.time()
    assert not agent.has_ended()


def test_arguments_and_environment_arrive_byte_for_byte(tmux: Tmux) -> None:
    args = [b"", b"two\nlines", b"\xff\xfe", b"$(id) ; #{pid} 'x' \"", b"-x", b""]
    env = (b"MULTI=a\nb\n", b"RAW=\xff\x80", b"EMPTY=", b"EQ=a=b", b"TERM=dumb", b"TMUX=/nowhere")
    agent = tmux.start("/bin/sh", "-c", "read line", *args, env=env)
    process = Path(f"/proc/{agent.pid}")
    assert (process / "cmdline").read_bytes().split(b"\0")[3:-1] == args
    seen = set((process / "environ").read_bytes().split(b"\0")[:-1])
    pane = f"{tmux.home}/s,{tmux.pid},"
    from_pane = {entry for entry in seen if entry.startswith((b"TERM", b"TMUX", b"COLORTERM"))}
    from_pane.discard(b"TMUXORCH_NAME=fix-login")
    assert seen - from_pane == {*tmux.env(), *env[:4]}
    assert b"TMUX_PANE=" + agent.pane.encode() in from_pane
    assert b"TERM=dumb" not in from_pane
    assert any(entry.startswith(b"TMUX=" + pane.encode()) for entry in from_pane)


def test_the_agent_starts_in_its_directory(tmux: Tmux) -> None:
    where = tmux.home / "with space\n"
    where.mkdir()
    agent = tmux.start("/bin/cat", settings={"cwd": str(where)})
    assert Path(f"/proc/{agent.pid}/cwd").resolve() == where.resolve()


@needs("bash")
def test_the_agent_gets_no_signal_blocked_or_ignored_and_no_stray_descriptor(tmux: Tmux) -> None:
    leaky = ["/bin/bash", "-c", 'trap "" HUP USR1; exec 9</dev/null 300</dev/null; exec "$@"']
    agent = tmux.start("/bin/sleep", "1000", command=[*leaky, "bash", *shim.command("")[:-1]])
    # 32 and 33 are glibc's own: no program can change them, and whoever started us may have.
    known = ~(1 << 31 | 1 << 32)
    for field in ("SigBlk", "SigIgn", "SigCgt"):
        assert int(status_field(agent.pid, field), 16) & known == 0, field
    descriptors = Path(f"/proc/{agent.pid}/fd")  # its own loader opens some for a moment
    eventually(lambda: sorted(os.listdir(descriptors)) == ["0", "1", "2"], "0, 1 and 2 only")


def test_a_file_can_be_the_agents_standard_input(tmux: Tmux) -> None:
    task = tmux.home / "task"
    task.write_text("do this\n")
    agent = tmux.start("/bin/cat", settings={"stdin": str(task)})
    assert agent.ended() == "code 0"
    agent.shows("do this")


# When it cannot be started


def not_executable(home: Path) -> str:
    path = home / "plain"
    path.write_text("#!/bin/sh\n")
    return str(path)


def without_interpreter(home: Path) -> str:
    path = home / "garbage"
    path.write_bytes(b"\x01\x02")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("program", "settings", "code", "culprit"),
    [
        (lambda _: "/nowhere/agent", {}, errno.ENOENT, "/nowhere/agent"),
        (not_executable, {}, errno.EACCES, "plain"),
        (without_interpreter, {}, errno.ENOEXEC, "garbage"),
        (lambda _: "/bin/cat", {"cwd": "/nowhere/tree"}, errno.ENOENT, "/nowhere/tree"),
        (lambda _: "/bin/cat", {"stdin": "/nowhere/task"}, errno.ENOENT, "/nowhere/task"),
        (lambda _: "", {}, errno.EINVAL, ""),
    ],
)
def test_a_failed_start_is_told_at_once_with_its_reason(
    tmux: Tmux, program: Callable[[Path], str], settings: dict[str, str], code: int, culprit: str
) -> None:
    agent = tmux.start(program(tmux.home), settings=settings)
    ended = agent.ended()
    assert ended.startswith(f"error {errno.errorcode[code]} ")
    assert ended.endswith(f"{culprit}: {os.strerror(code)}")
    assert not (agent.run_dir / "started").exists()
    agent.shows(f"fix-login could not be started: {ended.split(' ', 2)[2]}")
    agent.shows("fix-login did not start - press q")


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        (None, "ENOENT No such file or directory"),
        (b"arg\0/bin/ca", "EINVAL the launch file is cut short"),
        (b"cwd\0/\0", "EINVAL the launch file names no program"),
        (b"arg\0x\0grace_ms\0soon\0", "EINVAL invalid literal"),
    ],
)
def test_an_unreadable_launch_file_ends_the_shim_with_a_sentence(
    tmp_path: Path, launch: bytes | None, reason: str
) -> None:
    if launch is not None:
        (tmp_path / "launch").write_bytes(launch)
    (tmp_path / "started").write_text("of a run before\n")
    done = subprocess.run(
        shim.command(str(tmp_path)), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("[tmuxorch] cannot read what to start in ")
    assert (tmp_path / "exit").read_text().startswith(f"error {reason}")
    assert not (tmp_path / "started").exists()


# What is recorded


@pytest.mark.parametrize(
    ("script", "recorded", "said"),
    [
        ("exit 0", "code 0", "fix-login ended with exit code 0 - press q"),
        ("exit 41", "code 41", "fix-login ended with exit code 41 - press q"),
        ("kill -KILL $$", "signal 9", "fix-login was ended by SIGKILL - press q"),
        ("kill -ABRT $$", "signal 6", "fix-login was ended by SIGABRT - press q"),
        ("kill -40 $$", "signal 40", "fix-login was ended by signal 40 - press q"),
    ],
)
def test_how_the_agent_ended_is_recorded_and_said(
    tmux: Tmux, script: str, recorded: str, said: str
) -> None:
    agent = tmux.start("/bin/sh", "-c", f"ulimit -c 0; {script}")
    assert agent.ended() == recorded
    assert (agent.run_dir / "started").exists()
    agent.shows(said)


def test_reports_of_an_earlier_run_are_gone_before_the_new_agent_runs(tmux: Tmux) -> None:
    run_dir = tmux.run_dir()
    (run_dir / "exit").write_text("code 3\nat 1.0\n")
    (run_dir / "started").write_text("agent old\n")
    agent = tmux.start("/bin/sh", "-c", f"ls {run_dir}; read line", run_dir=run_dir)
    agent.shows("launch")
    assert "exit" not in agent.screen()
    assert agent.report("started")["agent"] != "old"


def test_the_fifo_wakes_a_poller_after_each_report(tmux: Tmux) -> None:
    run_dir = tmux.run_dir()
    ready = os.open(run_dir / "ready", os.O_RDONLY | os.O_NONBLOCK)
    try:
        poller = select.poll()
        poller.register(ready, select.POLLIN)
        agent = tmux.start("/bin/cat", run_dir=run_dir)
        [(_, events)] = poller.poll(DEADLINE_S * 1000)
        assert events & select.POLLIN
        assert (run_dir / "started").exists()
        assert os.read(ready, 1)
        agent.keys("C-d")
        eventually(lambda: poller.poll(1000) and os.read(ready, 10), "a byte for the exit")
        assert agent.has_ended()
    finally:
        os.close(ready)


def test_without_a_reader_or_a_run_directory_the_shim_goes_on(tmux: Tmux) -> None:
    agent = tmux.start("/bin/cat")
    eventually((agent.run_dir / "started").exists, "started")
    shutil.rmtree(agent.run_dir)
    agent.keys("C-d")
    agent.is_held()


def test_the_exit_is_recorded_before_a_slow_sweep_and_the_sweep_ends_with_the_last_one(
    tmux: Tmux,
) -> None:
    token = new_token()
    agent = tmux.start(
        "/bin/sh",
        "-c",
        f"trap '' TERM HUP; sleep {token} & exit 5",
        settings={"grace_ms": "3600000"},
    )
    assert agent.ended() == "code 5"
    [stubborn] = sleepers(token)
    os.kill(stubborn, signal.SIGKILL)
    agent.is_held()


def test_a_stopped_process_need_not_wait_for_the_grace_to_go(tmux: Tmux) -> None:
    tokens = {"stopped": new_token()}
    agent = start_with_background(tmux, tokens, grace_ms="3600000")
    os.kill(agent.pid, signal.SIGKILL)
    are_gone(tokens)


# The terminal


def test_the_agent_is_the_foreground_job_in_a_group_of_its_own(tmux: Tmux) -> None:
    agent = tmux.start("/bin/cat")
    assert os.getpgid(agent.pid) == foreground(agent) == agent.pid
    assert os.getsid(agent.pid) == agent.shim_pid


def test_signals_of_the_keyboard_do_not_end_or_stop_the_shim(tmux: Tmux) -> None:
    agent = tmux.start("/bin/cat")
    assert agent.pid
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        os.kill(agent.shim_pid, number)
    agent.keys("C-d")
    agent.is_held()


def test_ctrl_c_reaches_the_agent_and_not_the_shim(tmux: Tmux) -> None:
    agent = tmux.start(
        "/bin/sh", "-c", "trap 'echo interrupted' INT; echo go; while :; do sleep .01; done"
    )
    agent.shows("go")
    agent.keys("C-c")
    agent.shows("interrupted")
    agent.keys("C-\\")
    assert agent.ended() == f"signal {int(signal.SIGQUIT)}"
    agent.is_held()


def test_ctrl_z_does_not_wedge_the_window(tmux: Tmux) -> None:
    agent = tmux.start("/bin/cat")
    assert agent.pid
    agent.keys("C-z")
    agent.keys("once", "Enter")
    eventually(lambda: agent.screen().count("once") == 2, "cat answers")
    agent.keys("C-z")
    agent.keys("again", "Enter")
    eventually(lambda: agent.screen().count("again") == 2, "cat answers again")
    assert not agent.has_ended()


def test_an_agent_that_keeps_stopping_itself_is_continued_without_haste(tmux: Tmux) -> None:
    count = tmux.home / "count"
    count.touch()
    agent = tmux.start("/bin/sh", "-c", f"while :; do printf . >> {count}; kill -STOP $$; done")
    eventually(lambda: count.stat().st_size >= 3, "it is continued")
    before, since = count.stat().st_size, time.monotonic()
    burn_cpu(30)
    at_most = 2 + 10 * (time.monotonic() - since)
    assert count.stat().st_size - before <= at_most
    agent.kill_window()
    agent.closes()


@needs("bash")
def test_a_resized_window_reaches_the_agent(tmux: Tmux) -> None:
    agent = tmux.start(
        "/bin/bash", "-c", "trap 'stty size' WINCH; echo go; while :; do sleep .01; done"
    )
    agent.shows("go")
    tmux.run("resize-window", "-t", agent.window, "-x", "61", "-y", "17")
    agent.shows("17 61")


@needs("less")
def test_less_can_be_driven_and_left(tmux: Tmux) -> None:
    book = tmux.home / "book"
    book.write_text("".join(f"line {n}\n" for n in range(1, 501)))
    agent = tmux.start(shutil.which("less") or "", str(book))
    agent.shows("line 1\n")
    assert "alternate=1" in agent.flags()
    agent.keys("G")
    agent.shows("line 500\n")
    agent.keys("q")
    assert agent.ended() == "code 0"
    eventually(lambda: "alternate=0" in agent.flags(), "less leaves its screen")


@needs("top")
def test_top_redraws_and_takes_keys(tmux: Tmux) -> None:
    agent = tmux.start(shutil.which("top") or "", env=(b"TERM=screen",))
    agent.shows("load average")
    agent.keys("l")
    eventually(lambda: "load average" not in agent.screen(), "top hides its first line")
    agent.keys("q")
    assert agent.ended() == "code 0"


@needs("bash")
def test_an_interactive_shell_has_job_control(tmux: Tmux) -> None:
    token = new_token()
    agent = tmux.start("/bin/bash", "--norc", "--noprofile", "-i", env=(b"PS1=ask> ",))
    agent.shows("ask>")
    assert "no job control" not in agent.screen()
    agent.keys(f"sleep {token} &", "Enter")
    agent.shows("[1]")
    agent.keys("fg", "Enter")
    [sleeper] = eventually(lambda: sleepers(token), "the job runs")
    eventually(lambda: foreground(agent) == sleeper, "fg gives the job the terminal")
    agent.keys("C-z")
    agent.shows("Stopped")
    eventually(lambda: foreground(agent) == agent.pid, "the shell has the terminal back")
    agent.keys("fg", "Enter")
    eventually(lambda: foreground(agent) == sleeper, "fg gives the job the terminal")
    agent.keys("C-c")
    eventually(lambda: not sleepers(token), "Ctrl-C ends the job")
    agent.keys("exit 4", "Enter")
    assert agent.ended() == "code 4"


def foreground(agent: Agent) -> int:
    """The terminal's foreground group, as the kernel sees it."""
    return int(Path(f"/proc/{agent.shim_pid}/stat").read_text().rpartition(")")[2].split()[5])


# The held pane

FULL_SCREEN = r"""
printf '\033[?1049h\033[?25l\033[?1003;1006;2004;1004h\033[?1h\033=\033[>4;2m\033[5;20r\033[?6h'
printf '\033[44;1m\033(0'
stty raw -echo
for i in $(seq 24); do printf '\033[?6l\033[%d;1H\033(Brow %d of the picture' $i $i; done
printf '\033[12;10H\033[4h'; read x
"""


def test_a_killed_full_screen_agent_leaves_its_picture_and_a_calm_terminal(tmux: Tmux) -> None:
    agent = tmux.start("/bin/sh", "-c", FULL_SCREEN)
    eventually(lambda: agent.flags() == "1111 cursor=0 alternate=1", "the program is set up")
    agent.shows("row 24 of the picture")
    picture = agent.screen().splitlines()
    os.kill(agent.pid, signal.SIGKILL)
    assert agent.ended() == "signal 9"
    eventually(lambda: agent.flags() == "0000 cursor=1 alternate=1", "the modes are reset")
    agent.is_held()
    held = agent.screen().splitlines()
    assert held[:-1] == picture[:-1]
    assert held[-1] == ("[tmuxorch] fix-login was ended by SIGKILL - press q to close this window")
    assert tmux.run("display-message", "-p", "-t", agent.pane, "#{pane_dead}").strip() == "0"


def test_the_screen_stays_as_it_was_until_the_note(tmux: Tmux) -> None:
    agent = tmux.start("/bin/sh", "-c", "echo first; printf 'last words'; read x")
    agent.shows("last words")
    before = agent.screen()
    os.kill(agent.pid, signal.SIGKILL)
    agent.ended()
    eventually(lambda: foreground(agent) == agent.shim_pid, "the shim takes the terminal")
    agent.keys("-l", "typed into nothing")

    def is_noted() -> bool:
        now = agent.screen()
        assert now == before or "press q" in now
        return now != before

    eventually(is_noted, "the note")
    assert time.time() - float(agent.report("exit")["at"]) >= 1
    assert agent.screen().splitlines()[:-1] == before.splitlines()[:-1]


def test_the_note_does_not_cover_the_last_line_of_a_full_screen(tmux: Tmux) -> None:
    agent = tmux.start("/bin/sh", "-c", "seq 100; printf 'Error: the reason'; exit 1")
    agent.is_held()
    assert agent.screen().splitlines()[-3:] == [
        "100",
        "Error: the reason",
        "[tmuxorch] fix-login ended with exit code 1 - press q to close this window",
    ]


def test_the_note_stays_on_one_line_of_a_narrow_window(tmux: Tmux) -> None:
    agent = tmux.start("/bin/sh", "-c", "echo output; read x")
    agent.shows("output")
    tmux.run("resize-window", "-t", agent.window, "-x", "30", "-y", "10")
    agent.keys("Enter")
    agent.shows("[tmuxorch]")
    assert len([line for line in agent.screen().splitlines() if line]) <= 3
    assert agent.screen().splitlines()[-1].startswith("[tmuxorch] fix-login ended")


@pytest.mark.parametrize("text", ["quit\nquit\n", "qq", "q" * 20_000, "\x03\x03", "x"])
def test_a_paste_into_a_held_pane_neither_closes_it_nor_shows(tmux: Tmux, text: str) -> None:
    agent = tmux.start("/bin/true")
    agent.is_held()
    before, slept = agent.screen(), times_slept(agent.shim_pid)
    agent.paste(text)
    eventually(lambda: times_slept(agent.shim_pid) >= slept + 2, "the shim reads the paste")
    agent.keys("-l", "more")
    eventually(lambda: times_slept(agent.shim_pid) >= slept + 3, "the shim reads on")
    assert is_running(agent.shim_pid)
    assert agent.screen() == before


@pytest.mark.parametrize("key", ["q", "C-c", "C-d"])
def test_a_single_key_closes_a_held_pane(tmux: Tmux, key: str) -> None:
    agent = tmux.start("/bin/true")
    agent.is_held()
    agent.keys(key)
    agent.closes()


def test_keys_typed_for_the_agent_do_not_close_its_held_pane(tmux: Tmux) -> None:
    agent = tmux.start("/bin/sh", "-c", "stty -icanon; echo go; while :; do sleep 1000; done")
    agent.shows("go")
    agent.keys("q")
    agent.shows("q")
    os.kill(agent.pid, signal.SIGKILL)
    agent.is_held()


def test_a_held_shim_uses_no_cpu(tmux: Tmux) -> None:
    agent = tmux.start("/bin/true")
    agent.is_held()
    slept = -1

    def is_at_rest() -> bool:
        nonlocal slept
        before, slept = slept, times_slept(agent.shim_pid)
        return slept == before

    eventually(is_at_rest, "the shim sleeps")
    ticks = cpu_ticks(agent.shim_pid)
    burn_cpu(30)
    assert (times_slept(agent.shim_pid), cpu_ticks(agent.shim_pid)) == (slept, ticks)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_held_shim_goes_when_told(tmux: Tmux, number: signal.Signals) -> None:
    agent = tmux.start("/bin/true")
    agent.is_held()
    os.kill(agent.shim_pid, number)
    agent.closes()


# Nothing is left behind

BACKGROUND = {
    "plain": "sleep {} &",
    "nohup": "nohup sleep {} >/dev/null 2>&1 &",
    "setsid": "setsid sleep {} &",
    "double fork": "(sleep {} & exec setsid sh -c 'sleep {} &') &",
    "env -i": "env -i sleep {} &",
    "env -i setsid nohup": "env -i setsid nohup sleep {} </dev/null >/dev/null 2>&1 &",
    "ignoring HUP": "(trap '' HUP; exec sleep {}) &",
    "ignoring HUP and TERM": "(trap '' HUP TERM; exec setsid sleep {}) &",
    "stopped": "sleep {} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!",
}


def running(tokens: dict[str, str]) -> list[str]:
    return [kind for kind, token in tokens.items() if sleepers(token)]


def are_gone(tokens: dict[str, str]) -> None:
    try:
        eventually(lambda: not running(tokens), "the background processes are gone")
    except AssertionError as error:
        raise AssertionError(f"{error}; left: {running(tokens)}") from None


def start_with_background(
    tmux: Tmux,
    tokens: dict[str, str],
    command: list[str] | None = None,
    grace_ms: str = "200",
) -> Agent:
    lines = [BACKGROUND[kind].replace("{}", token) for kind, token in tokens.items()]
    script = "\n".join([*lines, "echo all started", "read code", "exit $code"])
    if not os.path.exists("/bin/bash"):
        pytest.skip("bash is not installed")
    agent = tmux.start("/bin/bash", "-c", script, command=command, settings={"grace_ms": grace_ms})
    agent.shows("all started")
    eventually(lambda: running(tokens) == list(tokens), "all kinds run")
    return agent


@pytest.mark.parametrize("how", ["kill-window", "exit", "kill -9", "stop", "kill-server"])
def test_no_background_process_outlives_the_agent_and_no_stranger_is_touched(
    tmux: Tmux, how: str
) -> None:
    tokens = {kind: new_token() for kind in BACKGROUND}
    with subprocess.Popen(["sleep", new_token()]) as stranger:
        try:
            agent = start_with_background(tmux, tokens)
            if how == "kill-window":
                agent.kill_window()
            elif how == "exit":
                agent.keys("6", "Enter")
            elif how == "kill -9":
                os.kill(agent.pid, signal.SIGKILL)
            elif how == "stop":
                os.kill(agent.shim_pid, signal.SIGTERM)
            else:
                tmux.run("kill-server")
            are_gone(tokens)
            # A hangup may also reach the agent as the end of its input.
            ended = {"exit": "code 6", "kill -9": "signal 9", "stop": "signal 15"}
            assert agent.ended() == ended.get(how, agent.ended())
            if how in ("exit", "kill -9"):
                agent.is_held()
            else:
                eventually(lambda: not is_running(agent.shim_pid), "the shim ends")
            assert stranger.poll() is None
            assert tmux.shims == [agent.shim_pid]
        finally:
            stranger.kill()


@needs("ps")
def test_without_a_subreaper_and_proc_what_is_left_of_the_session_is_swept(tmux: Tmux) -> None:
    tokens = {kind: new_token() for kind in ("plain", "nohup", "ignoring HUP", "stopped")}
    crippled = (
        "import sys; sys.path.append(sys.argv.pop(1)); import shim;"
        "shim.become_subreaper = lambda: False; shim._processes = shim._processes_by_ps;"
        "shim.main()"
    )
    line = [crippled if word == shim.BOOT else word for word in shim.command("")[:-1]]
    agent = start_with_background(tmux, tokens, command=line)
    os.kill(agent.pid, signal.SIGKILL)
    are_gone(tokens)
    agent.is_held()


@needs("ps")
def test_the_process_table_by_ps_agrees_with_proc() -> None:
    with subprocess.Popen(["sleep", new_token()]) as child:
        assert shim._processes_by_ps()[child.pid] == (os.getpid(), 0)
        assert shim._processes()[child.pid][0] == os.getpid()
        child.kill()


@needs("bash")
def test_a_closed_window_gives_the_agent_time_and_records_its_true_exit(tmux: Tmux) -> None:
    agent = tmux.start(
        "/bin/bash", "-c", "trap 'exit 7' TERM; trap '' HUP; echo go; while :; do sleep .01; done"
    )
    agent.shows("go")
    agent.kill_window()
    assert agent.ended() == "code 7"
    agent.closes()


@needs("bash")
def test_an_agent_deaf_to_term_is_killed_after_the_grace(tmux: Tmux) -> None:
    agent = tmux.start(
        "/bin/bash", "-c", "trap '' HUP TERM; echo go; read x", settings={"grace_ms": "50"}
    )
    agent.shows("go")
    os.kill(agent.shim_pid, signal.SIGTERM)
    assert agent.ended() == "signal 9"
    agent.closes()


def test_the_shim_reaps_orphans_while_the_agent_runs(tmux: Tmux) -> None:
    agent = tmux.start("/bin/sh", "-c", "(sh -c 'echo orphan $$' &) ; read x")
    agent.shows("orphan")
    orphan = int(agent.screen().split("orphan ")[1].split()[0])
    eventually(lambda: not Path(f"/proc/{orphan}").exists(), "no zombie is left")
    assert not agent.has_ended()
