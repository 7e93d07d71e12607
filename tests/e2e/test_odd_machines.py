"""Locales, homes and paths that are not as one would like."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import World

SLEEP = ("--", "sleep", "1000")

LOCALES = [
    {"LC_ALL": "C", "LANG": "C"},
    {"LC_ALL": "POSIX", "LANG": "POSIX"},
    {"LC_ALL": "xx_YY", "LANG": "xx_YY"},
    {"PYTHONIOENCODING": "ascii"},
]


@pytest.mark.parametrize("locale", LOCALES, ids=str)
def test_a_task_in_any_language_survives_any_locale(world: World, locale: dict[str, str]) -> None:
    world.environ.update(locale)
    made = world.new("-n", "a", "grüße, 世界 …", *SLEEP)
    assert made["task"] == "grüße, 世界 …"
    for verb in (("ls",), ("show", "a"), ("why", "a"), ("logs", "a"), ("sweep",), ("history",)):
        world.run(*verb)
    world.run("rm", "-y", "a")
    assert world.json("history")[0]["task"] == "grüße, 世界 …"


@pytest.mark.parametrize("home", [None, "", "relative", "/proc", "/dev/null"])
@pytest.mark.parametrize("verb", [("new", "-n", "a", *SLEEP), ("ls",), ("doctor",), ("init",)])
def test_a_home_that_is_missing_or_cannot_be_written_is_said_in_one_sentence(
    world: World, home: str | None, verb: tuple[str, ...]
) -> None:
    for name in ("HOME", "TMUXORCH_STATE_DIR", "TMUXORCH_WORKTREES_DIR", "TMUXORCH_CONFIG"):
        del world.environ[name]
    if home is not None:
        world.environ["HOME"] = home
    done = world.run(*verb, ok=False)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    if verb[0] == "new":
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
    assert world.linked_worktrees() == []


VERBS = [
    ("new", "-n", "b", *SLEEP), ("new", "a task"), ("ls",), ("--repo", ".", "ls"), ("show", "a"),
    ("why", "a"), ("restore", "a"), ("merge", "a"), ("restart", "--lost"), ("rm", "a"),
]  # fmt: skip


def test_a_repository_whose_path_is_not_utf8_is_refused_in_one_sentence(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    odd = Path(os.fsdecode(os.fsencode(world.directory) + b"/caf\xe9"))
    shutil.copytree(world.repo, odd)
    for verb in VERBS:
        done = world.run(*verb, cwd=odd, ok=False)
        assert done.returncode == 1, (verb, done.stderr)
        assert done.stderr.count("\n") == 1, (verb, done.stderr)
        assert "is not valid UTF-8; rename it first" in done.stderr, (verb, done.stderr)
    assert len(world.json("ls")) == 1
