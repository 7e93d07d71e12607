"""`scripts/run` and `scripts/test` on machines of every kind, played with stand-in programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SHELLS = [name for name in ("sh", "bash", "dash") if shutil.which(name)]
TOOLS = ("dirname", "cat", "cmp", "cp", "env", "sed", "grep", "mkdir", "touch", "chmod", "ls")


class Machine:
    """A PATH with nothing but what this kind of machine has."""

    def __init__(self, directory: Path, *, uid: int, programs: tuple[str, ...]) -> None:
        self.directory = directory
        self.bin = directory / "bin"
        self.bin.mkdir()
        self.log = directory / "log"
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or "")
        self.stand_in("id", f"echo {uid}")
        for program in programs:
            self.stand_in(program, "exit 0")

    def stand_in(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def manager(self, name: str, *, brings: str) -> None:
        """A package manager that notes what it was asked for and brings one program."""
        self.stand_in(
            name,
            f'echo {name} "$@" >>{self.log}; case "$*" in *{brings}*) '
            f"printf '#!/bin/sh\\n' >{self.bin}/{brings}; chmod 755 {self.bin}/{brings};; esac",
        )

    def says(self, shell: str, code: str) -> tuple[int, str]:
        script = self.directory / "scripts"
        script.mkdir(exist_ok=True)
        (script / "env.sh").write_text((ROOT / "scripts/env.sh").read_text())
        (script / "try").write_text(f'set -eu\n. "$(dirname "$0")/env.sh"\n{code}\n')
        done = subprocess.run(
            [shutil.which(shell) or "", str(script / "try")],
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


MANAGERS = {
    "apt-get": ("apt-get install -y tmux", "apt-get install -y procps less"),
    "dnf": ("dnf install -y tmux", "dnf install -y procps-ng less"),
    "pacman": ("pacman -Sy --noconfirm tmux", "pacman -Sy --noconfirm procps-ng less"),
    "apk": ("apk add tmux", "apk add procps-ng less"),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("manager", MANAGERS)
def test_root_gets_what_is_missing_installed(tmp_path: Path, manager: str, shell: str) -> None:
    machine = Machine(tmp_path, uid=0, programs=("git",))
    machine.manager(manager, brings="tmux")
    status, said = machine.says(shell, "need git tmux; want ps top less")
    assert status == 0, said
    assert [line for line in machine.asked() if "update" not in line] == list(MANAGERS[manager])
    assert "is needed" not in said
    assert "skipped: ps top less" in said  # this manager brings tmux and nothing else


@pytest.mark.parametrize("manager", MANAGERS)
def test_a_user_is_told_what_to_ask_for_and_nothing_is_tried(tmp_path: Path, manager: str) -> None:
    machine = Machine(tmp_path, uid=1000, programs=("git",))
    machine.manager(manager, brings="tmux")
    status, said = machine.says("sh", "need git tmux")
    assert status == 1
    assert said == f"== needed and not there: tmux - run: sudo {MANAGERS[manager][0]}\n"
    assert machine.asked() == []


def test_on_a_mac_an_ordinary_user_installs(tmp_path: Path) -> None:
    machine = Machine(tmp_path, uid=501, programs=("git",))
    machine.manager("brew", brings="tmux")
    assert machine.says("sh", "need git tmux")[0] == 0
    assert machine.asked() == ["brew install tmux"]


@pytest.mark.parametrize("uid", [0, 1000])
def test_where_everything_is_there_no_manager_is_called(tmp_path: Path, uid: int) -> None:
    machine = Machine(tmp_path, uid=uid, programs=("git", "tmux", "less", "ps", "top"))
    machine.manager("apt-get", brings="tmux")
    assert machine.says("sh", "need git tmux; want less ps top") == (0, "")
    assert machine.asked() == []


def test_a_python_without_venv_is_told_by_the_package_that_has_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, uid=1000, programs=("git", "tmux"))
    machine.manager("apt-get", brings="tmux")
    machine.stand_in("python3", 'case "$*" in *venv*|*pip*|*virtualenv*) exit 1;; esac')
    status, said = machine.says("sh", "need git tmux python3 venv")
    assert status == 1
    assert said == ("== needed and not there: venv - run: sudo apt-get install -y python3-venv\n")


def test_where_python_is_too_old_a_newer_one_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path, uid=1000, programs=())
    machine.manager("apt-get", brings="tmux")
    machine.stand_in("python3", "exit 1")
    status, said = machine.says("sh", "need python3")
    assert (status, "apt-get install -y python3.11" in said) == (1, True)


@pytest.mark.parametrize(
    ("python", "others", "way"),
    [
        ("exit 0", (), "python3 -m venv"),
        ('case "$*" in *ensurepip*) exit 1;; esac', ("uv",), "uv venv -q --python python3"),
        ('case "$*" in *ensurepip*) exit 1;; esac', (), "python3 -m venv --without-pip"),
        ('case "$*" in *venv,*|*pip*) exit 1;; esac', (), "python3 -m virtualenv -q"),
    ],
    ids=["venv", "uv", "pip", "virtualenv"],
)
def test_whatever_can_make_an_environment_is_used(
    tmp_path: Path, python: str, others: tuple[str, ...], way: str
) -> None:
    machine = Machine(tmp_path, uid=1000, programs=others)
    machine.stand_in("python3", python)
    assert machine.says("sh", "way_to_venv") == (0, f"{way}\n")


def test_an_environment_that_is_up_to_date_asks_nobody(tmp_path: Path) -> None:
    machine = Machine(tmp_path, uid=1000, programs=())
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/dev.txt").write_text("a==1\n")
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    for program in ("python", "tmuxorch"):
        (venv / "bin" / program).symlink_to("/bin/true")
    (venv / ".tmuxorch-dev").write_text("a==1\n")
    assert machine.says("sh", "need_environment run; need_environment dev") == (0, "")


# -- the lock files ------------------------------------------------------------------------


def pinned(kind: str) -> dict[str, str]:
    text = (ROOT / f"requirements/{kind}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, re.MULTILINE))


def asked_for(*groups: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = list(project["project"]["dependencies"])
    for group in groups:
        found += [line for line in project["dependency-groups"][group] if isinstance(line, str)]
    return [Requirement(line) for line in found]


@pytest.mark.parametrize(("kind", "groups"), [("run", ("build",)), ("dev", ("build", "dev"))])
def test_the_lock_file_pins_what_the_project_asks_for(kind: str, groups: tuple[str, ...]) -> None:
    pins = pinned(kind)
    for wanted in asked_for(*groups):
        version = pins.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted} is not pinned: run scripts/lock"
        assert wanted.specifier.contains(version), f"{wanted} is pinned to {version}"


def test_both_lock_files_pin_the_same() -> None:
    assert pinned("run").items() <= pinned("dev").items()


@pytest.mark.parametrize("kind", ["run", "dev"])
def test_every_pin_has_hashes_and_names_no_host(kind: str) -> None:
    text = (ROOT / f"requirements/{kind}.txt").read_text()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if "==" in line:
            assert lines[number + 1].strip().startswith("--hash=sha256:"), line
    assert "://" not in text
    assert "index" not in text


def test_the_scripts_need_no_shell_but_the_systems_own() -> None:
    for script in (ROOT / "scripts").iterdir():
        if script.is_file() and script.suffix == "" and os.access(script, os.X_OK):
            assert script.read_text().startswith("#!/bin/sh\n"), script
