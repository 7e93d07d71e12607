"""One private machine for some rounds: a repository, a tmux server, state, and what is not ours."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests import works
from tests.rawtree import RawTree, read_tree
from tests.soak import clock, table

SMALL_DISK = "size=48m"
ANSWER_S = 30.0
AGENT = Path(__file__).with_name("agent.sh")
CONFIG = """\
[setup]
copy = [".env"]
[cleanup]
dead = "{dead}"
grace_s = 0.3
never_started_s = 10
[restart]
first_delay_s = 0.2
[tmux]
timeout_s = 20
"""
GITCONFIG = """\
[user]
name = Soak
email = soak@example.org
[init]
defaultBranch = main
[protocol "file"]
allow = always
[advice]
detachedHead = false
"""


class World:
    """Everything of one seed; `disks` says which directories lie on a small disk of their own."""

    def __init__(self, seed: int, *, mounts: bool) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        # Short: a tmux socket path has at most 107 bytes.
        self.directory = Path(os.path.realpath(tempfile.mkdtemp(prefix="soak-", dir="/tmp")))
        self.disks = self._choose_disks() if mounts else ()
        for name in ("home", "tmp", "out", "journal", "data", *self.disks):
            (self.directory / name).mkdir(exist_ok=True)
        for name in self.disks:
            _run("mount", "-t", "tmpfs", "-o", SMALL_DISK, "soak", str(self.directory / name))
        self.state = self.directory / self._on("state") / "state"
        self.worktrees = self.directory / self._on("worktrees") / "worktrees"
        self.socket = str(self.directory / "tmux")
        self.clock = self.directory / "clock"
        clock.install(self.directory / "python")
        home = self.directory / "home"
        plain = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "GIT_CONFIG_NOSYSTEM": "1",
            "TMUX_TMPDIR": str(self.directory),
        }
        self.persons = plain
        self.environ = {
            **plain,
            "TMPDIR": str(self.directory / "tmp"),
            "PYTHONPATH": str(self.directory / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            clock.VARIABLE: str(self.clock),
            "TMUXORCH_STATE_DIR": str(self.state),
            "TMUXORCH_WORKTREES_DIR": str(self.worktrees),
            "TMUXORCH_CONFIG": str(home / "config.toml"),
            "TMUXORCH_SOCKET": self.socket,
        }
        (home / ".gitconfig").write_text(GITCONFIG)
        self.dead = self.dice.choice(["clean", "clean", "always", "never"])
        (home / "config.toml").write_text(CONFIG.format(dead=self.dead))
        self.kind = self.dice.choice(["plain"] * 5 + [*works.CONFIGS])
        self.repo = self.directory / "repo"
        self.mine = self.directory / "mine"
        self._make_repository()
        self.foreign: tuple[int, str] | None = None

    def _choose_disks(self) -> tuple[str, ...]:
        return self.dice.choice([("data",), ("data",), ("disk1", "disk2"), ("disk1",), ()])

    def _on(self, what: str) -> str:
        """Which directory holds the state or the worktrees."""
        own = {"state": "disk1", "worktrees": "disk2"}[what]
        return own if own in self.disks else "data"

    def _make_repository(self) -> None:
        works.fill_repository(self.repo, self.persons)
        self.git("config", *works.CONFIGS[self.kind])
        self.git("branch", "integration")
        self.git("branch", "hand-made")
        self.git("worktree", "add", "-q", "-b", "mine", str(self.mine))
        for top, name in ((self.repo, ".env"), (self.repo, "draft"), (self.mine, "draft")):
            (top / name).write_text(f"{name} of the person\n")
        (self.mine / "README").write_text("staged by the person\n")
        self.git("add", "README", cwd=self.mine)
        (self.mine / "src/app.py").unlink()

    # -- other people's eyes -----------------------------------------------------

    def git(self, *args: str, cwd: Path | None = None, ok: bool = True) -> str:
        """The person's own git; a failure is the soak's own unless `ok` is False."""
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.repo,
            env=self.persons,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=ANSWER_S * 4,
        )
        if ok and done.returncode != 0:
            raise RuntimeError(f"git {args}: {os.fsdecode(done.stderr)}")
        return os.fsdecode(done.stdout)

    def tmux(self, *args: str) -> subprocess.CompletedProcess[str]:
        """The person's own tmux; raises `TimeoutExpired` if the server does not answer."""
        return subprocess.run(
            ["tmux", "-u", "-S", self.socket, *args],
            env=self.persons,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_S,
        )

    def server_pid(self) -> int | None:
        said = self.tmux("display-message", "-p", "#{pid}").stdout.strip()
        return int(said) if said.isdecimal() else None

    def open_foreign_window(self) -> None:
        """Have a window of the person's own on the server."""
        pid = self.server_pid()
        if self.foreign is not None and self.foreign[0] == pid:
            return
        line = "printf 'mine alone'; exec sleep 100000"
        made = self.tmux("new-session", "-d", "-P", "-F", "#{pid} #{pane_id}", "-s", "mine", line)
        said = made.stdout.split()
        self.foreign = (int(said[0]), said[1]) if len(said) == 2 else None

    def not_ours(self) -> tuple[RawTree, RawTree, str]:
        """What no command may ever change: two worktrees and the person's branches."""
        heads = [f"refs/heads/{name}" for name in ("main", "mine", "hand-made")]
        return (
            read_tree(self.repo, self.persons),
            read_tree(self.mine, self.persons),
            self.git("for-each-ref", *heads),
        )

    # -- accidents ---------------------------------------------------------------

    def fill_disk(self, name: str) -> None:
        """Leave no byte on one of the small disks."""
        chunk = bytes(1 << 20)
        with suppress(OSError), open(self.directory / name / "ballast", "wb", buffering=0) as file:
            while True:
                if file.write(chunk) < len(chunk):
                    break

    def free_disks(self) -> None:
        for name in self.disks:
            (self.directory / name / "ballast").unlink(missing_ok=True)

    def age_remains(self) -> None:
        """Let hours pass for locks and temporary indexes: nobody may take young ones away."""
        then = time.time() - 2 * 3600
        # What comes and goes meanwhile is not waited for; `rglob` would fail of it.
        for top, directories, files in os.walk(self.repo / ".git"):
            in_admin = os.path.basename(os.path.dirname(top)) == "worktrees"
            for name in (*directories, *files):
                if name.endswith(".lock") or (in_admin and name.startswith("tmuxorch-")):
                    with suppress(FileNotFoundError):
                        os.utime(os.path.join(top, name), (then, then))

    # -- ours --------------------------------------------------------------------

    def processes(self) -> list[table.Process]:
        """Everything that was started in this world, the server included."""
        state, here = str(self.state), str(self.directory)
        return [p for p in table.scan() if p.state == state or here in p.command]

    def close(self) -> None:
        """End everything and delete it."""
        deadline = time.monotonic() + ANSWER_S
        while (left := self.processes()) and time.monotonic() < deadline:
            for process in left:
                table.kill(process.pid)
            time.sleep(0.02)
        for name in self.disks:
            _run("umount", "-l", str(self.directory / name))
        subprocess.run(["chmod", "-R", "u+rwx", str(self.directory)], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.directory.exists():  # too deep for Python's own walk
            subprocess.run(["rm", "-rf", "--", str(self.directory)], check=False)


def can_mount() -> bool:
    """Whether small disks can be made here, seen by nobody else (`scripts/soak` sees to that)."""
    return os.environ.get("SOAK_PRIVATE") == "yes"


def wait_until(look: Callable[[], object], seconds: float) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
