"""What is shipped: the built wheel in an environment of its own, and shell completion."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import tmuxorch
from tests.conftest import World

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
SLEEP = ("--", "sleep", "1000")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "-w", str(directory)]
    subprocess.run([*PIP, "wheel", *options, str(ROOT)], check=True)
    [built] = directory.glob("tmuxorch-*.whl")
    return built


def test_the_wheel_holds_all_it_needs_at_run_time(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = Path(tmuxorch.__file__).parent
    sources = {f"tmuxorch/{p.relative_to(package)}" for p in package.rglob("*.py")}
    assert sources <= names
    assert {
        "tmuxorch/shim.py",
        "tmuxorch/config/defaults.toml",
        "tmuxorch/service/care/demo.toml",
        "tmuxorch/py.typed",
    } <= names
    assert not [n for n in names if n.startswith("tests") or "__pycache__" in n]


def test_the_wheel_makes_and_removes_a_worker(wheel: Path, tmp_path: Path, world: World) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    programs = venv / "bin"
    options = ["--no-deps", "--no-index", str(wheel)]
    subprocess.run([*PIP, "--python", str(programs / "python"), "install", *options], check=True)
    # What it depends on comes from the environment of these tests, so that no network is needed.
    [packages] = venv.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    world.environ["PATH"] = f"{programs}:{world.environ['PATH']}"
    assert world.run("--version").stdout == f"tmuxorch {tmuxorch.__version__}\n"
    made = world.new("-n", "a", *SLEEP)
    shim = Path(f"/proc/{made['process']['shim_pid']}/cmdline").read_bytes()
    assert str(programs).encode() in shim
    assert [a["name"] for a in world.json("ls")] == ["a"]
    world.run("rm", "a")
    world.assert_nothing_left()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(world: World, shell: str) -> None:
    assert "_TMUXORCH_COMPLETE" in world.run("completion", shell).stdout


def complete(world: World, words: str) -> list[str]:
    env = {
        "_TMUXORCH_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    lines = world.run(env=env).stdout.splitlines()
    return [line.partition(",")[2] for line in lines if line]


def test_commands_and_names_are_completed(world: World) -> None:
    for name in ("front", "fence", "back"):
        world.new("-n", name, "--no-wait", *SLEEP)
    assert complete(world, "tmuxorch sh") == ["show"]
    assert complete(world, "tmuxorch show ") == ["back", "fence", "front"]
    assert complete(world, "tmuxorch rm back f") == ["fence", "front"]
    (world.home / "config.toml").write_text('[agents.clever]\ncommand = ["clever"]\n')
    assert complete(world, "tmuxorch new -a cl") == ["claude", "clever"]


def test_bases_are_completed_newest_first_and_only_as_the_shell_may_take_them(
    world: World,
) -> None:
    def at(day: int, *args: str) -> None:
        world.environ["GIT_COMMITTER_DATE"] = f"2030-01-{day:02} 12:00:00 +0000"
        world.git(*args)

    at(1, "tag", "-a", "feature-1.0", "-m", "older")
    for day, name in ((3, "feature/b"), (2, "feature/a"), (4, "feature-$(id)"), (5, "other")):
        at(day, "switch", "-q", "-c", name)
        at(day, "commit", "-q", "--allow-empty", "-m", name)
    world.git("switch", "-q", "main")
    world.git("update-ref", "refs/remotes/origin/feature", "main")
    world.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/feature")
    assert complete(world, "tmuxorch new -b feature") == ["feature/b", "feature/a", "feature-1.0"]
    assert complete(world, "tmuxorch new -b orig") == ["origin/feature"]
    other = world.make_repo("elsewhere")
    world.git("branch", "far", cwd=other)
    assert complete(world, f"tmuxorch --repo {other} new -b fa") == ["far"]
    assert complete(world, "tmuxorch --repo / new -b fa") == []


def test_completion_without_any_state_is_silent_and_makes_nothing(world: World) -> None:
    done = world.run(
        env={
            "_TMUXORCH_COMPLETE": "bash_complete",
            "COMP_WORDS": "tmuxorch show ",
            "COMP_CWORD": "2",
        }
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
    assert not world.state.exists()


def test_init_writes_a_config_that_loads_and_never_overwrites(world: World) -> None:
    path = Path(world.run("init").stdout.strip())
    assert path == world.home / "config.toml"
    assert json.loads(world.run("config", "--json").stdout)["defaults"]["agent"] == "claude"
    path.write_text("# mine\n")
    assert world.run("init", ok=False).returncode == 1
    assert path.read_text() == "# mine\n"
