"""Bugs leave logs, but not many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tmuxorch.cli import border


def meet(kind: str, message: str) -> Exception:
    """A bug of that kind, raised anew."""
    try:
        exec(compile("x = 1\n" * int(kind) + f"raise RuntimeError({message!r})", kind, "exec"))
    except RuntimeError as bug:
        return bug
    raise AssertionError


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMUXORCH_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state" / "logs"


def test_the_same_bug_has_one_log_however_often_it_is_met(logs: Path) -> None:
    paths = {border.write_log(meet("3", f"at {n}"), ["watch"]) for n in range(100)}
    [path] = paths
    assert [str(p) for p in logs.iterdir()] == [path]
    assert "RuntimeError: at 99" in Path(path).read_text()
    assert os.stat(path).st_mode & 0o077 == 0


def test_of_many_bugs_the_newest_logs_are_kept(logs: Path) -> None:
    paths = [border.write_log(meet(str(n), "x"), ["watch"]) for n in range(border.LOGS_KEPT + 15)]
    assert {str(p) for p in logs.iterdir()} == set(paths[15:])


def test_a_log_is_bounded(logs: Path) -> None:
    border.write_log(meet("1", "y" * 10_000_000), ["ls"])
    [log] = logs.iterdir()
    assert log.stat().st_size <= border.LOG_MAX_CHARS


def test_without_a_state_directory_the_log_is_elsewhere_and_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TMUXORCH_STATE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = border.write_log(meet("1", "z"), ["ls"])
    assert path.startswith(f"{tmp_path}/tmuxorch-{os.getuid()}/")
    assert Path(path).stat().st_mode & 0o077 == 0
