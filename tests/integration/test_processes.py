"""Real processes of every kind that an agent leaves about, and strangers beside them."""

from __future__ import annotations

import dataclasses
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

import tmuxorch
from tests.conftest import needs
from tmuxorch.adapters.system import portable, processes, procfs, writers
from tmuxorch.core.observation import Alive, Dead, Unknown
from tmuxorch.errors import TmuxorchError
from tmuxorch.model import ProcessId

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may")

T = TypeVar("T")
SOURCE = str(Path(tmuxorch.__file__).parents[1])
NOBODY = 65534
DEADLINE_S = 20.0
GRACE_S = 0.3

SUBREAPER = "import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); "


def eventually(look: Callable[[], T], what: str) -> T:
    """The first true answer of `look`."""
    deadline = time.monotonic() + DEADLINE_S
    while not (answer := look()):
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}"
        time.sleep(0.005)
    return answer


def is_dead(process: ProcessId) -> bool:
    return isinstance(procfs.observe_process(process), Dead)


def is_alive(process: ProcessId) -> bool:
    return procfs.observe_process(process) == Alive(process)


def stat_of(process: ProcessId, position: int) -> bytes:
    return procfs.read_stat(process.pid)[1][position]


class World:
    """An agent with a worktree and whatever runs around it; all of it ends with the test."""

    def __init__(self, path: Path) -> None:
        self.agent_id = uuid.uuid4().hex[:12]
        self.worktree = path / "worktree"
        self.elsewhere = path / "elsewhere"
        self.notes = path / "notes"
        for directory in (self.worktree, self.elsewhere, self.notes):
            directory.mkdir()
        self.met: list[ProcessId] = []
        self.children: list[subprocess.Popen[bytes]] = []

    def env(self, marker: str | None) -> dict[str, str]:
        own = {"PATH": os.environ["PATH"], "HOME": "/", "NOTES": str(self.notes)}
        return own if marker is None else own | {"TMUXORCH_AGENT_ID": marker}

    def start(
        self,
        *argv: str,
        marker: str | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> ProcessId:
        """A child of ours at the head of its own session, without a terminal."""
        child = subprocess.Popen(
            argv,
            cwd=cwd or self.worktree,
            env=self.env(marker) if env is None else env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.children.append(child)
        process = self.meet(child.pid)
        # Popen returns in the midst of the exec, before the environment is in place.
        eventually(lambda: stat_of(process, procfs.ENV_END) != b"0", "the program to start")
        return process

    def start_orphan(
        self,
        *argv: str,
        marker: str | None = None,
        cwd: Path | None = None,
        terminal: int | None = None,
        becomes: str | None = "sleep",
    ) -> ProcessId:
        """A process without a parent at the head of its own session, as if a person started it."""
        script = 'echo $$ >"$NOTES/orphan"; exec "$@"'
        subprocess.run(
            [sys.executable, "-ISc", _ORPHANED, "sh", "-c", script, "sh", *argv],
            cwd=cwd or self.worktree,
            env=self.env(marker),
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            check=True,
        )
        return self.noted("orphan", becomes=becomes)

    def shim(self, script: str = "", *, cwd: Path | None = None) -> ProcessId:
        """A stand-in for the pane's root: runs the script, then waits for ever."""
        return self.start(
            "sh", "-c", f"{script}\necho $$ >$NOTES/ready; exec sleep 600", marker=self.agent_id,
            cwd=cwd,
        )  # fmt: skip

    def meet(self, pid: int) -> ProcessId:
        process = procfs.identify(pid)
        assert process is not None, f"{pid} has already ended"
        self.met.append(process)
        return process

    def noted(self, name: str, *, becomes: str | None = None) -> ProcessId:
        """The process whose pid a script wrote to $NOTES/name, once it is that program."""
        note = self.notes / name
        text = eventually(lambda: note.exists() and note.read_text().strip(), f"a note {name}")
        assert text
        process = self.meet(int(text))
        if becomes is not None:
            comm = becomes.encode()
            eventually(lambda: procfs.read_stat(process.pid)[0] == comm, f"{name} is {becomes}")
        return process

    def kill(self, process: ProcessId, *, reap: bool = True) -> None:
        assert processes.send_signal(process, signal.SIGKILL)
        eventually(lambda: is_dead(process), "killed")
        for child in self.children:
            if reap and child.pid == process.pid:
                child.wait()

    def family(self, *roots: ProcessId, never: frozenset[int] = frozenset()) -> dict[int, str]:
        """What is found, as pid and reason."""
        members = processes.find_family(
            agent_id=self.agent_id,
            roots=roots,
            worktree=str(self.worktree),
            since_ticks=roots[0].ticks if roots else None,
            never=never,
        )
        return {member.process.pid: member.why for member in members}

    def end(self, *roots: ProcessId, grace_s: float = GRACE_S) -> set[int]:
        members = processes.end_family(
            agent_id=self.agent_id,
            roots=roots,
            worktree=str(self.worktree),
            since_ticks=roots[0].ticks if roots else None,
            grace_s=grace_s,
        )
        return {member.process.pid for member in members}

    def close(self) -> None:
        for note in self.notes.iterdir():
            with suppress(ValueError, AssertionError):
                self.meet(int(note.read_text()))
        for process in self.met:
            processes.send_signal(process, signal.SIGKILL)
        for child in self.children:
            child.kill()
            child.wait()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path.resolve())
    try:
        yield made
    finally:
        made.close()


def in_child(work: Callable[[], str]) -> str:
    """What `work` says in a forked child, which may change its user and limits."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = work()
        except BaseException as error:  # noqa: BLE001 - a child must not return into pytest
            answer = f"{type(error).__name__}: {error}"
        os.write(into, answer.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


def as_nobody(work: Callable[[], str]) -> str:
    def drop_and_work() -> str:
        os.setgroups([])
        os.setresuid(NOBODY, NOBODY, NOBODY)
        return work()

    return in_child(drop_and_work)


# As `setsid --fork --ctty`, which not every setsid can.
_ORPHANED = """
import fcntl, os, sys, termios
if os.fork() == 0:
    os.setsid()
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 1)
    os.execvp(sys.argv[1], sys.argv[1:])
"""


def in_python(*prefix: str, code: str) -> str:
    """What a new interpreter says, below a command that changes its namespaces."""
    preamble = (
        f"import sys, os; sys.path.insert(0, {SOURCE!r}); "
        "from tmuxorch.adapters.system import procfs, processes; "
        "from tmuxorch.model import ProcessId; "
    )
    answer = subprocess.run(
        [*prefix, sys.executable, "-c", preamble + code],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode and (said := answer.stderr).startswith(("unshare: ", "mount: ", "sh: ")):
        pytest.skip(f"not possible here: {said.splitlines()[0]}")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


# One process: who is it, does it live?


def test_a_running_process_is_alive_under_its_identity(world: World) -> None:
    process = world.start("sleep", "600")
    assert procfs.observe_process(process) == Alive(process)
    assert ProcessId.parse(str(process)) == process
    assert procfs.identify(process.pid) == process


def test_we_identify_ourselves() -> None:
    me = procfs.identify_self()
    assert me.pid == os.getpid()
    assert procfs.observe_process(me) == Alive(me)


def test_an_ended_process_is_dead_and_has_no_identity(world: World) -> None:
    process = world.start("sleep", "600")
    world.kill(process)
    assert procfs.observe_process(process) == Dead("no such process")
    assert procfs.identify(process.pid) is None


def test_a_zombie_is_dead(world: World) -> None:
    process = world.start("sleep", "600")
    world.kill(process, reap=False)
    assert stat_of(process, procfs.STATE) == b"Z"
    assert procfs.observe_process(process) == Dead("it is a zombie")
    assert procfs.identify(process.pid) is None
    assert not processes.send_signal(process, signal.SIGTERM)


def test_a_process_whose_first_thread_has_ended_is_alive(world: World) -> None:
    """It looks like a zombie, but its other threads work on."""
    code = (
        "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); "
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    process = world.start(sys.executable, "-c", code)
    eventually(lambda: stat_of(process, procfs.STATE) == b"Z", "the first thread to end")
    assert procfs.observe_process(process) == Alive(process)
    assert not processes.wait_dead(process, 0.05)
    assert processes.send_signal(process, signal.SIGKILL)
    assert processes.wait_dead(process, DEADLINE_S)


@needs_root
def test_a_process_that_we_may_not_signal_is_alive(world: World) -> None:
    process = world.start("sleep", "600")
    assert as_nobody(lambda: str(is_alive(process))) == "True"


@needs_root
def test_a_signal_to_another_users_process_is_a_clear_error(world: World) -> None:
    process = world.start("sleep", "600")
    answer = as_nobody(lambda: str(processes.send_signal(process, signal.SIGTERM)))
    assert answer.startswith("TmuxorchError")
    assert "belongs to another user" in answer
    assert is_alive(process)


def test_the_pid_of_another_process_is_not_ours(world: World) -> None:
    process = world.start("sleep", "600")
    for earlier in (
        dataclasses.replace(process, ticks=process.ticks - 1),
        dataclasses.replace(process, inode=process.inode + 1),
    ):
        fact = procfs.observe_process(earlier)
        assert fact == Dead("its pid belongs to another process now")
        assert not processes.send_signal(earlier, signal.SIGKILL)
        assert processes.wait_dead(earlier, 0)
    assert is_alive(process)


def test_an_identity_without_inode_is_compared_by_its_start(world: World) -> None:
    process = world.start("sleep", "600")
    assert is_alive(dataclasses.replace(process, inode=0))


@needs_root
def test_a_reused_pid_is_dead_even_within_the_same_tick(world: World) -> None:
    def start_again(pid: int) -> ProcessId | None:
        with suppress(ProcessLookupError):
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        successor = world.start("sleep", "600")
        return successor if successor.pid == pid else None

    process = world.start("sleep", "600")
    world.kill(process)
    try:
        successor = eventually(lambda: start_again(process.pid), "the pid to come round")
    except PermissionError:
        pytest.skip("this kernel does not let us choose pids")
    assert successor is not None
    same_tick = dataclasses.replace(process, ticks=successor.ticks)
    for earlier in (process, same_tick):
        assert procfs.observe_process(earlier) == Dead("its pid belongs to another process now")
        assert not processes.send_signal(earlier, signal.SIGKILL)
        assert world.family(earlier) == {}
    assert is_alive(successor)


def test_the_number_of_a_thread_is_no_process(world: World) -> None:
    code = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()"
    process = world.start(sys.executable, "-c", code)
    tasks = Path(f"/proc/{process.pid}/task")
    eventually(lambda: len(list(tasks.iterdir())) == 2, "the thread")
    thread = max(int(task.name) for task in tasks.iterdir())
    assert procfs.identify(thread) is None


def test_after_a_reboot_every_process_is_dead(world: World) -> None:
    process = world.start("sleep", "600")
    earlier = dataclasses.replace(process, boot=str(uuid.uuid4()))
    assert procfs.observe_process(earlier) == Dead("the machine was rebooted")
    assert not processes.send_signal(earlier, signal.SIGKILL)
    assert world.family(earlier) == {}


@needs_root
@needs("unshare")
def test_from_a_container_a_process_of_the_host_is_unknown(world: World) -> None:
    process = world.start("sleep", "600")
    code = f"print(procfs.observe_process(ProcessId.parse({str(process)!r})))"
    answer = in_python("unshare", "--pid", "--fork", "--mount-proc", code=code)
    assert answer.startswith("Unknown")
    assert "namespace" in answer


@needs_root
@needs("unshare")
def test_a_proc_of_another_namespace_is_not_believed() -> None:
    """There the pid in /proc with our number is somebody else."""
    code = (
        "print(procfs.observe_process(ProcessId('boot', 1, os.getpid(), 1, 1)))\n"
        "try: procfs.identify_self()\n"
        "except Exception as error: print(error)"
    )
    answer = in_python("unshare", "--pid", "--fork", code=code)
    assert answer.startswith("Unknown")
    assert answer.count("another pid namespace") == 2


@needs_root
@needs("unshare")
def test_an_empty_proc_is_no_table_of_nobody() -> None:
    code = (
        "from tmuxorch.adapters.system.process_table import read_table\n"
        "try: print(read_table())\n"
        "except Exception as error: print('refused:', error)"
    )
    mount = 'mount -t tmpfs none /proc && exec "$@"'
    answer = in_python("unshare", "--mount", "sh", "-c", mount, "sh", code=code)
    assert answer.startswith("refused:")


@needs_root
@needs("unshare")
def test_a_process_hidden_by_hidepid_is_unknown(world: World) -> None:
    process = world.start("sleep", "600")
    code = (
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); "
        f"print(procfs.observe_process(ProcessId.parse({str(process)!r})))"
    )
    mount = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    answer = in_python("unshare", "--mount", "sh", "-c", mount, "sh", code=code)
    assert answer.startswith("Unknown")


def test_without_file_descriptors_left_a_process_is_unknown(world: World) -> None:
    process = world.start("sleep", "600")
    assert procfs.identify(process.pid) == process

    def starve() -> str:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        with pytest.raises(TmuxorchError):
            procfs.identify(process.pid)
        with pytest.raises(TmuxorchError):
            world.family(process)
        return str(procfs.observe_process(process))

    answer = in_child(starve)
    assert answer.startswith("Unknown")
    assert os.strerror(errno.EMFILE) in answer


def test_a_start_is_counted_from_boot_so_that_setting_the_clock_changes_nothing(
    world: World,
) -> None:
    process = world.start("sleep", "600")
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - process.ticks / os.sysconf("SC_CLK_TCK")
    assert 0 <= age_s < DEADLINE_S


def test_the_age_of_a_process_is_told_while_it_runs(world: World) -> None:
    process = world.start("sleep", "600")
    age_s = procfs.age_s(process.pid)
    assert age_s is not None
    assert 0 <= age_s < DEADLINE_S
    world.kill(process, reap=False)
    assert procfs.age_s(process.pid) is None


def test_a_program_may_call_itself_anything(world: World) -> None:
    program = world.elsewhere / "a) Z 1 (b\n"
    shutil.copy("/bin/sleep", program)
    process = world.start(str(program), "600")
    eventually(lambda: procfs.read_stat(process.pid)[0] == b"a) Z 1 (b\n", "the program to start")
    assert is_alive(process)
    assert stat_of(process, procfs.PARENT) == str(os.getpid()).encode()


def test_waiting_ends_with_the_process(world: World) -> None:
    process = world.start("sleep", "0.2")
    started = time.monotonic()
    assert processes.wait_dead(process, DEADLINE_S)
    assert time.monotonic() - started < DEADLINE_S / 2


def test_waiting_gives_up_in_time(world: World) -> None:
    process = world.start("sleep", "600")
    assert not processes.wait_dead(process, 0.05)
    assert is_alive(process)


# The family: whatever an agent leaves about is found and ended.

KINDS = {
    "plain": "sleep 600 & echo $! >$NOTES/it",
    "setsid": "setsid sleep 600 & echo $! >$NOTES/it",
    "nohup": "nohup sleep 600 >/dev/null 2>&1 & echo $! >$NOTES/it",
    "double fork": "(sleep 600 & echo $! >$NOTES/it)",
    "daemon": "(setsid sh -c 'sleep 600 & echo $! >$NOTES/it')",
    "env -i": "env -i sleep 600 & echo $! >$NOTES/it",
    "env -i setsid": "env -i setsid sleep 600 & echo $! >$NOTES/it",
    "ignores HUP and TERM": "(trap '' HUP TERM; exec sleep 600) & echo $! >$NOTES/it",
    "stopped": "sleep 600 & echo $! >$NOTES/it",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shim", ["alive", "killed"])
def test_every_kind_of_background_process_is_found_and_ended(
    world: World, kind: str, shim: str
) -> None:
    root = world.shim(KINDS[kind])
    world.noted("ready")
    process = world.noted("it", becomes="sleep")
    if kind == "stopped":
        processes.send_signal(process, signal.SIGSTOP)
        eventually(lambda: stat_of(process, procfs.STATE) == b"T", "stopped")
    if shim == "killed":
        world.kill(root)
        eventually(lambda: stat_of(process, procfs.PARENT) != str(root.pid).encode(), "orphaned")
    assert process.pid in world.family(root)
    assert process.pid in world.end(root)
    assert is_dead(process)
    assert is_dead(root)
    assert world.family(root) == {}


def test_each_member_says_why_it_belongs_and_what_it_is(world: World) -> None:
    root = world.shim("env -i sleep 601 & echo $! >$NOTES/it")
    world.noted("ready", becomes="sleep")
    child = world.noted("it", becomes="sleep")
    (first, second) = processes.find_family(
        agent_id=world.agent_id, roots=(root,), worktree=None, since_ticks=None
    )
    assert first == processes.Member(root, "sleep 600", "is a recorded process of the agent")
    assert second == processes.Member(child, "sleep 601", f"was started by {root.pid}")


def test_the_marker_alone_is_enough(world: World) -> None:
    process = world.start("sleep", "600", marker=world.agent_id, cwd=world.elsewhere)
    assert world.family() == {process.pid: "carries the agent's marker"}


def test_a_marker_behind_a_long_environment_is_found(world: World) -> None:
    env = {f"V{n}": "x" * 1000 for n in range(100)} | {"TMUXORCH_AGENT_ID": world.agent_id}
    process = world.start("/bin/sleep", "600", env=env)
    assert process.pid in world.family()


def test_a_dead_roots_session_is_known_by_its_zombie(world: World) -> None:
    """Neither marker, parent nor directory tells whose this is."""
    root = world.shim("env -i sleep 600 & echo $! >$NOTES/it", cwd=world.elsewhere)
    world.noted("ready")
    process = world.noted("it", becomes="sleep")
    world.kill(root, reap=False)
    assert world.family(root) == {process.pid: f"is in the session of {root.pid}"}


def test_a_dead_roots_session_is_known_by_a_proven_member(world: World) -> None:
    root = world.shim(
        "env -i sleep 600 & echo $! >$NOTES/it; sleep 600 & echo $! >$NOTES/marked",
        cwd=world.elsewhere,
    )
    world.noted("ready")
    process, marked = world.noted("it"), world.noted("marked", becomes="sleep")
    world.kill(root)
    assert world.family(root).keys() == {process.pid, marked.pid}
    world.kill(marked)
    assert world.family(root) == {}, "by its number alone, it could be anybody's session"


def test_the_session_of_a_member_belongs_as_well(world: World) -> None:
    """A session can only be entered by being born into it."""
    leader = world.start(
        "sh",
        "-c",
        "(env -i sleep 600 & echo $! >$NOTES/it); exec sleep 600",
        marker=world.agent_id,
        cwd=world.elsewhere,
    )
    process = world.noted("it", becomes="sleep")
    assert world.family().keys() == {leader.pid, process.pid}


def test_the_process_group_of_a_root_belongs_as_well(world: World) -> None:
    code = (
        "import os, subprocess as s; "
        "run = lambda pid: s.Popen(['sh', '-c', '(env -i sleep 600 & echo $! >$NOTES/it); "
        "echo $$ >$NOTES/agent; exec sleep 600'], process_group=pid); run(0).wait()"
    )
    world.start(sys.executable, "-c", code, cwd=world.elsewhere)
    process, agent = world.noted("it", becomes="sleep"), world.noted("agent")
    assert world.family(agent)[process.pid] == f"is in the process group of {agent.pid}"


def test_a_zombie_is_never_a_member(world: World) -> None:
    root = world.shim()
    world.noted("ready")
    world.kill(root, reap=False)
    assert world.family(root) == {}
    assert world.end(root) == set()


def test_what_was_proven_once_is_ended_though_its_parent_took_the_proof_along(
    world: World,
) -> None:
    """The shim ends first here, and leaves a child that nothing connects with the agent."""
    root = world.shim("env -i setsid sleep 600 & echo $! >$NOTES/it", cwd=world.elsewhere)
    world.noted("ready")
    process = world.noted("it", becomes="sleep")
    assert process.pid in world.end(root)
    assert is_dead(process)


# Strangers: never touched.


def assert_untouched(world: World, stranger: ProcessId, *roots: ProcessId) -> None:
    assert stranger.pid not in world.family(*roots)
    assert stranger.pid not in world.end(*roots)
    assert is_alive(stranger)


def test_an_orphan_without_any_environment_in_the_worktree_is_the_agents(world: World) -> None:
    """What the strangers below differ from in one point each."""
    root = world.shim()
    process = world.start_orphan("env", "-i", "sleep", "600")
    assert world.family(root)[process.pid] == "was left behind in the agent's worktree"


def test_a_users_shell_on_its_own_terminal_is_left_alone_but_reported(world: World) -> None:
    root = world.shim()
    ours, theirs = os.openpty()
    try:
        shell = world.start_orphan("env", "-i", "sleep", "600", terminal=theirs)
        assert stat_of(shell, procfs.TERMINAL) != b"0"
        assert_untouched(world, shell, root)
        users = processes.observe_users_of(str(world.worktree), excluding=[root.pid])
        why = {member.process.pid: member.why for member in users}
        assert why[shell.pid] == f"works in {world.worktree}"
        assert root.pid not in why
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_users_detached_editor_in_the_worktree_is_left_alone(world: World) -> None:
    root = world.shim()
    assert_untouched(world, world.start_orphan("sleep", "600"), root)


def test_a_program_that_wrote_over_its_environment_is_left_alone(world: World) -> None:
    """Like a server that shows its state in `ps`: nobody knows what the environment was."""
    code = (
        "import ctypes, os, time; "
        "stat = open('/proc/self/stat').read().rpartition(')')[2].split(); "
        "start, end = int(stat[47]), int(stat[48]); ctypes.memset(start, 0, end - start); "
        "open(os.environ['NOTES'] + '/written', 'w').write(str(os.getpid())); time.sleep(600)"
    )
    root = world.shim()
    process = world.start_orphan(sys.executable, "-c", code, becomes=None)
    world.noted("written")
    assert not Path(f"/proc/{process.pid}/environ").read_bytes().strip(b"\0")
    assert_untouched(world, process, root)


def test_a_child_of_a_living_stranger_is_left_alone(world: World) -> None:
    root = world.shim()
    script = "env -i setsid sleep 600 & echo $! >$NOTES/it; exec sleep 600"
    world.start("sh", "-c", script)
    assert_untouched(world, world.noted("it", becomes="sleep"), root)


def test_an_orphan_outside_the_worktree_is_left_alone(world: World) -> None:
    sibling = world.worktree.with_name("worktree-2")
    sibling.mkdir()
    root = world.shim()
    assert_untouched(world, world.start_orphan("env", "-i", "sleep", "600", cwd=sibling), root)


def test_an_orphan_older_than_the_agent_is_left_alone(world: World) -> None:
    process = world.start_orphan("env", "-i", "sleep", "600")

    def start_later() -> ProcessId | None:
        root = world.start("sleep", "600", marker=world.agent_id)
        return root if root.ticks > process.ticks else None

    root = eventually(start_later, "the next tick")
    assert root is not None
    assert_untouched(world, process, root)


@needs_root
def test_another_users_orphan_is_left_alone(world: World) -> None:
    for directory in (world.worktree, *world.worktree.parents[:3]):
        directory.chmod(0o755)
    root = world.shim()
    process = world.start_orphan(
        "setpriv", f"--reuid={NOBODY}", "--clear-groups", "env", "-i", "sleep", "600"
    )
    eventually(lambda: Path(f"/proc/{process.pid}").stat().st_uid == NOBODY, "setpriv to work")
    assert_untouched(world, process, root)


def test_another_agents_process_is_left_alone_even_below_ours(world: World) -> None:
    other = uuid.uuid4().hex[:12]
    root = world.shim(
        f"TMUXORCH_AGENT_ID={other} sh -c 'sleep 600 & echo $! >$NOTES/child; "
        "echo $$ >$NOTES/theirs; exec sleep 600' &",
    )
    strangers = [
        world.noted("theirs", becomes="sleep"),
        world.noted("child", becomes="sleep"),
        world.start_orphan("sleep", "600", marker=other),
    ]
    for stranger in strangers:
        assert_untouched(world, stranger, root)


def test_a_stranger_of_the_same_name_is_left_alone(world: World) -> None:
    root = world.shim("sleep 600 & echo $! >$NOTES/it")
    world.noted("it")
    assert_untouched(world, world.start("sleep", "600", cwd=world.elsewhere), root)


def test_we_and_our_ancestors_are_never_members() -> None:
    """Whatever speaks for it: here our own parent is a root of the agent."""
    parent = procfs.identify(os.getppid())
    assert parent is not None
    me = procfs.identify_self()
    members = processes.find_family(
        agent_id="0" * 12, roots=(parent, me), worktree=os.getcwd(), since_ticks=0
    )
    assert {parent.pid, me.pid, 1}.isdisjoint(member.process.pid for member in members)


def test_we_know_inside_whom_we_run(world: World) -> None:
    assert processes.is_ancestor_of_us(os.getpid())
    assert processes.is_ancestor_of_us(os.getppid())
    assert not processes.is_ancestor_of_us(world.start("sleep", "600").pid)


def test_whom_the_caller_names_is_never_a_member(world: World) -> None:
    root = world.shim("sleep 600 & echo $! >$NOTES/it")
    process = world.noted("it")
    assert process.pid not in world.family(root, never=frozenset({process.pid}))


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_a_tmux_server_that_the_agent_started_is_left_alone_with_its_panes(world: World) -> None:
    """In it, other agents and the user's own shells may live, all with the inherited marker."""
    socket = world.elsewhere / "s"
    tmux = f"tmux -S {socket} -f /dev/null"
    pane = 'echo $$ >"$NOTES/pane"; exec sleep 600'
    code = SUBREAPER + (
        "import os, time, subprocess as s; "
        f"s.run(['sh', '-c', {tmux!r} + ' new-session -d \"$0\"', {pane!r}]); "
        "open(os.environ['NOTES'] + '/ready', 'w').write(str(os.getpid())); time.sleep(600)"
    )
    root = world.start(sys.executable, "-c", code, marker=world.agent_id)
    world.noted("ready")
    shell = world.noted("pane")
    server = world.meet(int(stat_of(shell, procfs.PARENT)))
    assert stat_of(server, procfs.PARENT) == str(root.pid).encode()
    assert world.family(root).keys() == {root.pid}
    world.end(root)
    assert is_alive(server)
    assert is_alive(shell)
    assert world.family(root) == {}


def test_the_pane_of_an_ordinary_tmux_server_is_found_by_its_marker(world: World) -> None:
    tmux = ["tmux", "-S", str(world.elsewhere / "s"), "-f", "/dev/null"]
    pane = ["sh", "-c", f"echo $$ >{world.notes}/pane; exec sleep 600"]
    marker = f"TMUXORCH_AGENT_ID={world.agent_id}"
    world.start(*tmux, "new-session", "-d", "-e", marker, *pane)
    process = world.noted("pane")
    server = world.meet(int(stat_of(process, procfs.PARENT)))
    assert world.family() == {process.pid: "carries the agent's marker"}
    world.end()
    assert is_dead(process)
    eventually(lambda: is_dead(server), "the server to end with its last window")


# Ending.

# Says so when it is asked to end, and does not.
_TELLS = (
    "import os, signal; note = os.environ['NOTES'];"
    "signal.signal(15, lambda *_: open(note + '/asked', 'w').close());"
    "print(os.getpid(), file=open(note + '/it', 'w'), flush=True)\n"
    "while True: signal.pause()"
).replace("'", '"')


def test_the_shim_is_asked_first_and_ends_its_descendants_itself(world: World) -> None:
    root = world.shim(
        f"{sys.executable} -ISc '{_TELLS}' & child=$!\n"
        "trap 'kill -KILL $child; wait $child; exit 0' TERM\n"
        "echo $$ >$NOTES/ready; while :; do wait; done"
    )
    world.noted("ready")
    process = world.noted("it")
    started = time.monotonic()
    assert world.end(root, grace_s=DEADLINE_S) == {root.pid, process.pid}
    assert time.monotonic() - started < DEADLINE_S / 2
    assert not (world.notes / "asked").exists()
    assert is_dead(process)


def test_a_member_may_end_in_its_own_way_within_the_grace(world: World) -> None:
    script = (
        "trap 'echo bye >$NOTES/bye; exit' TERM; echo $$ >$NOTES/it; while :; do sleep 0.05; done"
    )
    process = world.start("sh", "-c", script, marker=world.agent_id)
    world.noted("it")
    assert process.pid in world.end(grace_s=DEADLINE_S)
    assert (world.notes / "bye").read_text() == "bye\n"
    (world.notes / "bye").unlink()
    assert world.children[0].wait() != -signal.SIGKILL


def test_a_stopped_process_is_continued_to_hear_that_it_should_end(world: World) -> None:
    script = "trap 'echo 0 >$NOTES/bye; exit' TERM; echo $$ >$NOTES/it; kill -STOP $$; sleep 600"
    process = world.start("sh", "-c", script, marker=world.agent_id)
    world.noted("it")
    eventually(lambda: stat_of(process, procfs.STATE) == b"T", "the process to stop")
    world.end(grace_s=DEADLINE_S)
    assert (world.notes / "bye").exists()


def test_one_that_forks_all_the_time_is_ended_with_all_it_forked(world: World) -> None:
    script = (
        "trap '' TERM; echo $$ >$NOTES/it; n=0; while [ $n -lt 3000 ]; "
        "do env -i setsid sleep 60 & n=$((n+1)); sleep 0.002; done; exec sleep 600"
    )
    root = world.start("sh", "-c", script, marker=world.agent_id)
    world.noted("it")
    ended = world.end(root, grace_s=0.1)
    assert len(ended) > 2
    assert is_dead(root)
    assert world.family(root) == {}


def test_one_that_flees_into_its_own_child_is_ended(world: World) -> None:
    """Each generation lives for a moment, in a session of its own; at most twenty seconds."""
    code = (
        "import os, time\n"
        "for n in range(400):\n"
        "    time.sleep(0.05)\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
    )
    world.start(sys.executable, "-c", code, marker=world.agent_id)
    started = time.monotonic()
    assert world.end()
    assert time.monotonic() - started < 10
    assert world.family() == {}


def test_ending_returns_as_soon_as_all_are_gone(world: World) -> None:
    root = world.shim("sleep 600 & echo $! >$NOTES/it")
    world.noted("ready")
    started = time.monotonic()
    world.end(root, grace_s=DEADLINE_S)
    assert time.monotonic() - started < DEADLINE_S / 2


def test_ending_again_finds_nothing_to_do(world: World) -> None:
    root = world.shim()
    assert world.end(root) == {root.pid}
    assert world.end(root) == set()


@needs_root
def test_survivors_are_named(world: World) -> None:
    process = world.start("sleep", "600", cwd=world.elsewhere)
    started = time.monotonic()
    answer = as_nobody(lambda: str(world.end(process)))
    assert time.monotonic() - started < 5, "what may not be signalled is not worth a wait"
    assert answer.startswith("TmuxorchError")
    assert f"{process.pid} (sleep 600)" in answer
    assert "belongs to another user" in answer
    assert world.agent_id in answer
    assert is_alive(process)


# Who may still write below a directory.

# Maps a file, closes its descriptor (Python's own mmap keeps one), says so and waits.
MAPPER = """
import ctypes, mmap, os, sys, time
flags, kind, rights, path, ready = sys.argv[1:]
fd = os.open(path, getattr(os, flags))
map = ctypes.CDLL(None, use_errno=True).mmap
map.restype = ctypes.c_ssize_t
size = ctypes.c_size_t(4096)
assert map(None, size, eval(rights, vars(mmap)), getattr(mmap, kind), fd, ctypes.c_long(0)) != -1
os.close(fd)
open(ready, "w").close()
time.sleep(600)
"""


def start_mapper(world: World, path: Path, flags: str, kind: str, rights: str) -> ProcessId:
    ready = world.elsewhere / "ready"
    process = world.start(sys.executable, "-c", MAPPER, flags, kind, rights, str(path), str(ready))
    eventually(ready.exists, "the mapping")
    return process


def mappings_of(process: ProcessId, path: Path) -> str | None:
    return writers._mapped_below(process.pid, f"{path}/")


@pytest.mark.parametrize(
    ("flags", "kind", "rights", "counts"),
    [
        ("O_RDWR", "MAP_SHARED", "PROT_READ | PROT_WRITE", True),
        ("O_RDWR", "MAP_SHARED", "PROT_WRITE", True),
        ("O_RDWR", "MAP_SHARED", "PROT_READ", True),  # it may be made writable at any time
        ("O_RDONLY", "MAP_SHARED", "PROT_READ", False),
        ("O_RDWR", "MAP_PRIVATE", "PROT_READ | PROT_WRITE", False),
    ],
)
def test_memory_that_is_a_file_counts_as_a_writer(
    world: World, flags: str, kind: str, rights: str, counts: bool
) -> None:
    inside = world.worktree / "sub"
    inside.mkdir()
    (inside / "data").write_bytes(b"x" * 4096)
    process = start_mapper(world, inside / "data", flags, kind, rights)
    found = mappings_of(process, world.worktree)
    assert found == (f"{inside}/data mapped for writing" if counts else None)
    assert mappings_of(process, world.worktree / "su") is None


@pytest.mark.parametrize("name", ["data", "two\nlines", "not really (deleted)", "sp ace"])
def test_a_mapped_file_is_found_under_its_new_place_until_it_is_deleted(
    world: World, name: str
) -> None:
    old, new = world.elsewhere / "old", world.elsewhere / "new"
    old.mkdir()
    (old / name).write_bytes(b"x" * 4096)
    process = start_mapper(world, old / name, "O_RDWR", "MAP_SHARED", "PROT_WRITE")
    old.rename(new)
    assert mappings_of(process, old) is None
    assert mappings_of(process, new) == f"{new}/{name} mapped for writing"
    members = processes.observe_writers_below(str(new))
    assert [member.process for member in members] == [process]
    (new / name).unlink()
    assert mappings_of(process, new) is None


# Without /proc: psutil on Linux stands in for psutil on macOS.


@pytest.fixture
def without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "LINUX", False)
    monkeypatch.delattr(os, "pidfd_open")


@pytest.mark.usefixtures("without_proc")
def test_without_proc_life_and_death_are_told_apart(world: World) -> None:
    process = world.start("sleep", "600")
    assert process.boot == portable.BOOT
    assert is_alive(process)
    assert not processes.wait_dead(process, 0.05)
    earlier = dataclasses.replace(process, ticks=process.ticks - 1)
    assert procfs.observe_process(earlier) == Dead("its pid belongs to another process now")
    assert not processes.send_signal(earlier, signal.SIGKILL)
    world.kill(process, reap=False)
    assert procfs.observe_process(process) == Dead("it is a zombie")
    assert procfs.identify(process.pid) is None
    world.children[-1].wait()
    assert procfs.observe_process(process) == Dead("no such process")
    assert processes.wait_dead(process, 0)


@pytest.mark.usefixtures("without_proc")
def test_without_proc_a_shims_report_is_completed_by_who_had_the_pid_then(world: World) -> None:
    process = world.start("sleep", "600")
    reported = dataclasses.replace(process, boot=portable.NO_BOOT, ticks=process.ticks + 5)
    assert procfs.complete(reported) == process
    # Younger than the report: it has the pid of one that has ended.
    earlier = dataclasses.replace(reported, ticks=process.ticks - 2 * portable.ROUNDING)
    assert is_dead(procfs.complete(earlier))
    elsewhere = dataclasses.replace(reported, machine="another")
    assert isinstance(procfs.observe_process(procfs.complete(elsewhere)), Unknown)
    world.kill(process)
    assert is_dead(procfs.complete(reported))


@pytest.mark.usefixtures("without_proc")
def test_without_proc_the_identity_of_another_system_is_unknown() -> None:
    foreign = ProcessId(str(uuid.uuid4()), 1, os.getpid(), 1, 1)
    assert isinstance(procfs.observe_process(foreign), Unknown)


@pytest.mark.usefixtures("without_proc")
@pytest.mark.parametrize("kind", KINDS)
def test_without_proc_the_family_is_found_and_ended(world: World, kind: str) -> None:
    root = world.shim(KINDS[kind])
    world.noted("ready")
    process = world.noted("it")
    stranger = world.start("sleep", "600", cwd=world.worktree)
    assert process.pid in world.family(root)
    world.end(root)
    assert is_dead(process)
    assert is_dead(root)
    assert is_alive(stranger)
    users = processes.observe_users_of(str(world.worktree))
    assert stranger.pid in {member.process.pid for member in users}
