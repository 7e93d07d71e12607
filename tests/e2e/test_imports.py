"""`ls` stays cheap, what decides is pure, and one door leads to the terminal."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tmuxorch
from tests.conftest import World, wait_for

PACKAGE = Path(tmuxorch.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
HEAVY = {"textual", "git", "libtmux", "psutil", "rich", "click"}
APART = {"git", "libtmux"}
FIRST_FRAME = """
import asyncio, os, sys
from tmuxorch.tui.app import TmuxorchApp
from tmuxorch.tui.workplace import Workplace

async def look():
    socket, repo = sys.argv[1:]
    app = TmuxorchApp(
        Workplace(environ=os.environ, socket=socket, repo=repo, cwd=repo, keys={})
    )
    async with app.run_test() as pilot:
        while not app.board.roster.snapshot.loaded:
            await pilot.pause(0.02)

asyncio.run(look())
print(*{name.partition(".")[0] for name in sys.modules})
"""
IMPURE = {"os", "sqlite3", "subprocess", "psutil", "time", "socket", "shutil", "pathlib", "signal"}


def imported(module: str) -> Iterator[str]:
    """The full names of everything the module imports, anywhere in it."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: 1 - node.level or None] if node.level else []
            origin = ".".join([*parts, *filter(None, [node.module])])
            yield from (
                f"{origin}.{alias.name}" if f"{origin}.{alias.name}" in MODULES else origin
                for alias in node.names
            )


def room(module: str) -> str:
    return module.removeprefix("tmuxorch").removeprefix(".").partition(".")[0]


@pytest.mark.parametrize("module", sorted(m for m in MODULES if room(m) in {"core", "model"}))
def test_what_decides_touches_nothing(module: str) -> None:
    assert not {name for name in imported(module) if name.split(".")[0] in IMPURE}


# The shim has a terminal of its own and no other module; the lexing process a pipe.
AT_THE_DOOR = {"tmuxorch.cli.output", "tmuxorch.tui.lexing", "tmuxorch.shim"}


@pytest.mark.parametrize("module", sorted(MODULES.keys() - AT_THE_DOOR))
def test_only_the_door_writes_bytes_to_the_terminal(module: str) -> None:
    source = MODULES[module].read_text()
    past_it = r"\b(stdout|stderr)\.buffer\b|\b__std(out|err)__\b|os\.write\([12],"
    assert re.findall(past_it, source) == []
    # Where the locale is ASCII, click writes around the stream: only what is our own text.
    by_click = r"click\.(?:echo|confirm|prompt|secho)\((?!ctx\.get_help|e\.format_m|completion)"
    assert re.findall(by_click, source) == []


@pytest.mark.parametrize("arguments", [["ls"], ["ls", "--json"], ["ls", "--all", "--json"]])
def test_ls_imports_nothing_heavy(world: World, arguments: list[str]) -> None:
    world.new("-n", "a", "--no-wait", "--", "sleep", "1000")
    done, modules = imported_by(world, *arguments)
    assert '"a"' in done.stdout or " a " in done.stdout
    assert not modules & HEAVY


@pytest.mark.parametrize("arguments", [["send", "a", "hello"], ["watch", "--once"], ["doctor"]])
def test_no_command_imports_what_is_asked_in_a_process_of_its_own(
    world: World, arguments: list[str]
) -> None:
    world.new("-n", "a", "--no-wait", "--", "cat")
    _, modules = imported_by(world, *arguments)
    assert not modules & APART


def test_the_first_frame_does_not_either(world: World) -> None:
    world.new("-n", "a", "--no-wait", "--", "cat")
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FRAME, world.socket, str(world.repo)],
        env=world.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(done.stdout.split())
    assert "textual" in modules, "the list of modules was not read"
    assert not modules & APART


def imported_by(world: World, *arguments: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """How the command went, and the packages that it imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tmuxorch", *arguments],
        cwd=world.repo,
        env=world.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    modules = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()
    }
    assert "sqlite3" in modules, "the list of modules was not read"
    return done, modules


def test_what_ls_and_report_need_imports_no_typing_and_nobody_else_goes_without(
    world: World,
) -> None:
    """For them typing costs more than it gives; elsewhere TYPE_CHECKING is imported from it."""
    made = world.new("-n", "a", "--no-wait", "--", "sleep", "1000")
    ended = world.new("-n", "b", "--no-wait", "--", "true")
    needed: set[str] = set()
    wait_for(lambda: world.run("ls", "--json").stdout.count('"alive": true') == 1)
    for arguments in (["ls"], ["ls", "--all", "--json"], ["report", "working"]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "tmuxorch", *arguments],
            cwd=world.repo,
            env=world.environ | {"TMUXORCH_AGENT_ID": made["id"]},
            capture_output=True,
            text=True,
            check=True,
        )
        needed |= {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert ended["id"] in world.run("ls", "--json").stdout
    assert "typing" not in needed
    without = {
        name for name, path in MODULES.items() if "TYPE_CHECKING = False" in path.read_text()
    }
    assert without - {"tmuxorch.shim"} <= needed
