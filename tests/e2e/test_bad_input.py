"""What a person can get wrong: the right exit status, one clear sentence, nothing left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import World, wait_for

SLEEP = ("--", "sleep", "1000")


def refused(
    world: World,
    *args: str,
    status: int = 1,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
) -> str:
    """Run a command that must be refused; what it says after its narration, if there was any."""
    done = world.run(*args, cwd=cwd, env=env, ok=False)
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    _, mark, said = f"\n{done.stderr}".partition("\ntmuxorch: ")
    assert mark, done.stderr
    return said.removesuffix("\n")


def assert_one_sentence(said: str, *words: str) -> None:
    assert "\n" not in said
    for word in words:
        assert word in said, said


# -- names --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("show", "nobody"),
        ("attach", "nobody"),
        ("send", "nobody", "hello"),
        ("logs", "nobody"),
        ("diff", "nobody"),
        ("stop", "nobody"),
        ("restart", "nobody"),
        ("rm", "-y", "nobody"),
    ],
)
def test_an_unknown_name_is_said_to_be_unknown(world: World, args: tuple[str, ...]) -> None:
    assert_one_sentence(refused(world, *args), "nobody", "tmuxorch ls")


@pytest.mark.parametrize(
    "args",
    [
        ("--json", "show", "nobody"),
        ("attach", "nobody", "--json"),
        ("send", "nobody", "hello", "--json"),
        ("logs", "nobody", "--json"),
        ("diff", "nobody", "--json"),
        ("demo", "--json"),
    ],
)
def test_every_verb_tells_its_errors_as_json_when_asked(
    world: World, args: tuple[str, ...]
) -> None:
    done = world.run(*args, ok=False)
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"].keys() == {"code", "message"}


def test_json_may_be_asked_for_before_the_verb(world: World) -> None:
    assert json.loads(world.run("--json", "ls").stdout) == []
    assert json.loads(world.run("--json", "history").stdout) == []


def test_rm_of_a_known_and_an_unknown_name_removes_nothing(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    refused(world, "rm", "-y", "a", "nobody")
    assert world.json("ls")[0]["process"]["alive"] is True


def test_a_taken_name_is_refused_and_its_owner_untouched(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    assert_one_sentence(refused(world, "new", "-n", "a", *SLEEP), "'a'", "taken", "-n")
    assert world.marked_panes() == [made["id"]]
    world.run("rm", "a")
    world.assert_nothing_left()


@pytest.mark.parametrize(
    "name",
    ["../x", "A B", "-x", "#(touch pwned)", "", "a" * 500, "ü", "a/b", ".git", "a;b", "a\n", "\a"],
)
def test_a_bad_name_is_refused_with_the_rule(world: World, name: str) -> None:
    said = refused(world, "new", f"--name={name}", *SLEEP)
    assert_one_sentence(said, "a-z")
    assert "\x1b" not in said
    assert len(said) < 300
    assert list(world.directory.rglob("pwned")) == []
    world.assert_nothing_left()


@pytest.mark.parametrize(
    "branch", ["a..b", "-x", "a b", "", "HEAD", "x.lock", "a:b", "/a", "a/", "@{-1}", "a\x1bb"]
)
def test_a_bad_branch_is_refused(world: World, branch: str) -> None:
    said = refused(world, "new", "-n", "a", f"--branch={branch}", *SLEEP)
    assert_one_sentence(said, "branch")
    assert "\x1b" not in said
    world.assert_nothing_left()
    assert world.branches() == ["main"]


def test_a_branch_that_is_checked_out_elsewhere_is_refused(world: World) -> None:
    assert_one_sentence(refused(world, "new", "-n", "a", "--branch", "main", *SLEEP), "main")
    world.assert_nothing_left()
    assert world.branches() == ["main"]


def test_a_branch_below_an_existing_one_is_refused(world: World) -> None:
    said = refused(world, "new", "-n", "a", "--branch", "main/below", *SLEEP)
    assert_one_sentence(said, "main")
    world.assert_nothing_left()


@pytest.mark.parametrize("base", ["nowhere", "-x", "", "main:README", "HEAD~99", "a..b"])
def test_an_unknown_base_is_refused(world: World, base: str) -> None:
    if base:
        refused(world, "new", "-n", "a", f"--base={base}", *SLEEP)
    else:
        assert world.new("-n", "a", "--base=", *SLEEP)["base"] == "main"
        world.run("rm", "a")
    world.assert_nothing_left()


# -- repositories -------------------------------------------------------------------------


def test_outside_a_repository_new_says_so(world: World) -> None:
    said = refused(world, "new", "-n", "a", *SLEEP, cwd=world.home)
    assert_one_sentence(said, str(world.home))
    assert world.marked_panes() == []


def test_a_repository_that_is_not_there_is_named(world: World) -> None:
    said = refused(world, "new", "-n", "a", "--repo", "/no/such/place", *SLEEP)
    assert_one_sentence(said, "/no/such/place")


def test_a_repository_without_a_commit_is_refused(world: World) -> None:
    empty = world.directory / "empty"
    empty.mkdir()
    world.git("init", "-q", ".", cwd=empty)
    said = refused(world, "new", "-n", "a", *SLEEP, cwd=empty)
    assert_one_sentence(said, "no commit")
    assert world.linked_worktrees(empty) == []
    assert world.marked_panes() == []


def test_a_bare_repository_works(world: World) -> None:
    bare = world.directory / "bare.git"
    world.git("clone", "-q", "--bare", str(world.repo), str(bare))
    made = world.new("-n", "a", *SLEEP, cwd=bare)
    assert (Path(made["worktree"]) / "README").exists()
    assert [a["name"] for a in world.json("ls", cwd=bare)] == ["a"]
    world.run("rm", "a", cwd=bare)
    assert world.branches(bare) == ["main"]
    assert world.marked_panes() == []
    assert not Path(made["worktree"]).exists()


def test_a_failing_post_checkout_hook_leaves_nothing(world: World) -> None:
    hook = world.repo / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\necho the hook is cross >&2\nexit 3\n")
    hook.chmod(0o755)
    done = world.run("new", "-n", "a", *SLEEP, ok=False)
    assert done.returncode == 1
    assert "hook" in done.stderr
    world.assert_nothing_left()


# -- tmux ---------------------------------------------------------------------------------


def with_tmux(world: World, tmux: str | None) -> dict[str, str]:
    """An environment with git and the command, and `tmux` being that script or missing."""
    programs = world.directory / "programs"
    programs.mkdir()
    for name in ("git", "sh", "sleep", "tmuxorch", "python"):
        found = shutil.which(name, path=world.environ["PATH"])
        assert found is not None
        (programs / name).symlink_to(found)
    if tmux is not None:
        (programs / "tmux").write_text(tmux)
        (programs / "tmux").chmod(0o755)
    return {"PATH": str(programs)}


def test_without_tmux_on_the_path_it_says_what_to_install(world: World) -> None:
    said = refused(world, "new", "-n", "a", *SLEEP, env=with_tmux(world, None))
    assert_one_sentence(said, "tmux", "install", "3.2")
    assert world.linked_worktrees() == []
    assert world.branches() == ["main"]


@pytest.mark.parametrize("version", ["3.1c", "2.9a", "1.8"])
def test_an_old_tmux_is_refused(world: World, version: str) -> None:
    script = f'#!/bin/sh\n[ "$1" = -V ] && echo tmux {version} && exit 0\nexit 9\n'
    said = refused(world, "new", "-n", "a", *SLEEP, env=with_tmux(world, script))
    assert_one_sentence(said, version, "3.2")
    assert world.linked_worktrees() == []
    assert world.branches() == ["main"]


def test_an_old_tmux_is_noticed_after_a_good_one(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    env = with_tmux(world, "#!/bin/sh\necho tmux 3.1c\n")
    assert "3.1c" in refused(world, "new", "-n", "b", *SLEEP, env=env)
    world.run("rm", "a")
    world.assert_nothing_left()


@pytest.mark.parametrize("version", ["2.17.1", "2.30.2", "2.33.8"])
def test_an_old_git_is_refused(world: World, version: str) -> None:
    env = with_tmux(world, None)
    (world.directory / "programs/tmux").symlink_to(shutil.which("tmux") or "")
    git = world.directory / "programs/git"
    git.unlink()
    git.write_text(f'#!/bin/sh\ncase "$*" in *--version*) echo git version {version};; esac\n')
    git.chmod(0o755)
    said = refused(world, "new", "-n", "a", *SLEEP, env=env)
    assert_one_sentence(said, f"git version {version} is too old", "install git 2.34 or newer")
    assert world.linked_worktrees() == []
    assert world.branches() == ["main"]
    assert world.run("doctor", env=env, ok=False).returncode == 1


@pytest.fixture
def stopped_tmux(world: World) -> Iterator[dict[str, Any]]:
    """A worker `a` whose tmux server does not answer."""
    made = world.new("-n", "a", *SLEEP)
    (world.home / "config.toml").write_text("[tmux]\ntimeout_s = 0.3\n")
    server = int(world.tmux("display-message", "-p", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    yield made
    os.kill(server, signal.SIGCONT)


@pytest.mark.parametrize(
    "args", [("rm", "-y", "a"), ("stop", "a"), ("send", "a", "x"), ("logs", "a")]
)
def test_a_tmux_that_does_not_answer_leaves_the_worker_as_it_is(
    world: World, stopped_tmux: dict[str, Any], args: tuple[str, ...]
) -> None:
    assert_one_sentence(refused(world, *args), "did not answer within 0.3 s", world.socket)
    [listed] = world.json("ls")
    assert (listed["state"], listed["process"]["alive"]) == ("running", True)
    assert world.linked_worktrees() == [stopped_tmux["worktree"]]
    assert world.json("history") == []


def test_a_worker_that_a_stopped_tmux_kept_from_starting_can_be_removed(
    world: World, stopped_tmux: dict[str, Any]
) -> None:
    server = psutil.Process(stopped_tmux["process"]["shim_pid"]).ppid()
    assert_one_sentence(refused(world, "new", "-n", "b", *SLEEP), "did not answer")
    os.kill(server, signal.SIGCONT)
    world.run("rm", "-y", *(a["name"] for a in world.json("ls")))
    wait_for(lambda: world.marked_panes() == [])
    world.assert_nothing_left()


@pytest.mark.parametrize("option", [("-L", "../x"), ("-S", "/tmp/" + "x" * 200)])
def test_an_impossible_socket_is_refused(world: World, option: tuple[str, str]) -> None:
    done = world.run(*option, "new", "-n", "a", *SLEEP, ok=False)
    assert done.returncode in {1, 2}
    assert "-S" in done.stderr
    world.assert_nothing_left()


def test_a_socket_in_a_missing_directory_is_refused(world: World) -> None:
    said = refused(world, "-S", "/no/such/dir/tmux", "new", "-n", "a", *SLEEP)
    assert_one_sentence(said, "/no/such/dir/tmux")
    world.assert_nothing_left()


# -- state and configuration --------------------------------------------------------------


def test_a_file_in_the_way_of_the_state_directory_is_named(world: World) -> None:
    world.state.write_text("in the way")
    for args in (("new", "-n", "a", *SLEEP), ("history",), ("show", "a")):
        assert_one_sentence(refused(world, *args), str(world.state))
    assert world.state.read_text() == "in the way"
    assert world.linked_worktrees() == []
    assert world.branches() == ["main"]


def test_a_damaged_store_is_named_and_not_replaced(world: World) -> None:
    world.new("-n", "a", *SLEEP)
    [database] = [p for p in world.state.iterdir() if p.suffix in {".db", ".sqlite", ".sqlite3"}]
    for beside in world.state.glob(database.name + "-*"):
        beside.unlink()
    database.write_bytes(b"not a database" * 1000)
    for args in (("ls",), ("new", "-n", "b", *SLEEP), ("rm", "-y", "a")):
        refused(world, *args)
    assert database.read_bytes() == b"not a database" * 1000
    assert len(world.marked_panes()) == 1
    assert len(world.linked_worktrees()) == 1


def test_a_file_in_the_way_of_the_worktrees_directory_leaves_nothing(world: World) -> None:
    world.worktrees.write_text("in the way")
    done = world.run("new", "-n", "a", *SLEEP, ok=False)
    assert done.returncode == 1
    assert str(world.worktrees) in done.stderr
    assert world.branches() == ["main"]
    assert world.json("ls") == []
    assert world.marked_panes() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tmux]\ntimeout_s = 'soon'\n", ["timeout_s"]),
        ("[tmux]\ntimout_s = 3\n", ["timout_s"]),
        ("[nonsense]\nx = 1\n", ["nonsense"]),
        ("[defaults]\nkind = 'eternal'\n", ["kind"]),
        ("not toml", ["TOML"]),
        ("[agents.mine]\ntask = 'none'\n", ["agents.mine"]),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(world: World, text: str, words: list[str]) -> None:
    (world.home / "config.toml").write_text(text)
    said = refused(world, "new", "-n", "a", *SLEEP)
    assert_one_sentence(said, "config.toml", *words)
    world.assert_nothing_left()


def test_a_config_that_cannot_be_read_is_named(world: World) -> None:
    (world.home / "config.toml").mkdir()
    assert_one_sentence(refused(world, "new", "-n", "a", *SLEEP), "config.toml")
    world.assert_nothing_left()


def test_a_repositorys_own_commands_need_trust(world: World) -> None:
    (world.repo / ".tmuxorch.toml").write_text("[setup]\nrun = ['touch pwned']\n")
    said = refused(world, "new", "-n", "a", *SLEEP)
    assert_one_sentence(said, ".tmuxorch.toml", "tmuxorch config --trust")
    assert list(world.directory.rglob("pwned")) == []
    world.assert_nothing_left()
    world.run("config", "--trust", "-y")
    made = world.new("-n", "a", *SLEEP)
    assert (Path(made["worktree"]) / "pwned").exists()


def test_a_failing_setup_shows_its_output_and_leaves_nothing(world: World) -> None:
    (world.home / "config.toml").write_text(
        "[setup]\nrun = ['touch built; echo no network; exit 4']\n"
    )
    done = world.run("new", "-n", "a", *SLEEP, ok=False)
    assert done.returncode == 1
    assert "exit code 4" in done.stderr
    assert "no network" in done.stderr
    world.assert_nothing_left()


# -- programs -----------------------------------------------------------------------------


def test_a_missing_program_is_named_and_nothing_made(world: World) -> None:
    assert_one_sentence(refused(world, "new", "-n", "a", "--", "no-such-prog"), "'no-such-prog'")
    world.assert_nothing_left()
    assert world.json("history") == []


def test_a_missing_program_by_path_is_named_and_nothing_left(world: World) -> None:
    done = world.run("new", "-n", "a", "--", "./no-such-prog", ok=False)
    assert done.returncode == 1
    assert "./no-such-prog" in done.stderr
    assert "No such file" in done.stderr
    world.assert_nothing_left()


def test_an_unknown_profile_lists_the_known_ones(world: World) -> None:
    said = refused(world, "new", "-n", "a", "-a", "nobody", "do it")
    assert_one_sentence(said, "nobody", "claude", "demo")
    world.assert_nothing_left()


def test_a_program_that_dies_at_once_shows_why_and_leaves_nothing(world: World) -> None:
    script = "echo out of cheese; echo really >&2; exit 42"
    done = world.run("new", "-n", "a", "the task", "--", "sh", "-c", script, ok=False)
    assert done.returncode == 1
    assert done.stdout == ""
    for words in ("exit code 42", "out of cheese", "really"):
        assert words in done.stderr
    world.assert_nothing_left()
    assert world.json("ls") == []
    [row] = world.json("history")
    assert row["reason"] == "create_failed"
    assert row["exit"] == {"code": 42, "signal": None}
    assert "out of cheese" in row["last_screen"]


def test_a_program_that_is_killed_at_once_is_named_by_its_signal(world: World) -> None:
    done = world.run("new", "-n", "a", "--", "sh", "-c", "kill -SEGV $$", ok=False)
    assert done.returncode == 1
    assert "SIGSEGV" in done.stderr
    world.assert_nothing_left()


def test_work_of_a_program_that_dies_at_once_is_saved(world: World) -> None:
    done = world.run("new", "-n", "a", "--", "sh", "-c", "echo x >work.txt; exit 1", ok=False)
    assert done.returncode == 1
    [row] = world.json("history")
    assert (world.state / "archive" / row["id"] / "files/work.txt").read_text() == "x\n"
    world.assert_nothing_left()


# -- usage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("new", "--no-such-option"),
        ("new", "--kind", "eternal"),
        ("new", "task", "--"),
        ("new", "task", "-f", "file", *SLEEP),
        ("new", "-a", "demo", *SLEEP),
        ("show",),
        ("rm",),
        ("logs", "a", "-n", "0"),
        ("completion", "tcsh"),
        ("ls", "surplus"),
    ],
)
def test_wrong_usage_is_status_two(world: World, args: tuple[str, ...]) -> None:
    refused(world, *args, status=2)
    world.assert_nothing_left()


@pytest.mark.parametrize(("typed", "meant"), [("lss", "ls"), ("histroy", "history")])
def test_an_unknown_command_is_corrected(world: World, typed: str, meant: str) -> None:
    assert_one_sentence(refused(world, typed, status=2), f"did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("args", "code", "status"),
    [
        (("show", "nobody"), "unknown_name", 1),
        (("new", "-n", "A B", *SLEEP), "bad_name", 1),
        (("new", "-n", "a", "-b", "nowhere", *SLEEP), "git_failed", 1),
        (("new", "-n", "a", "--", "no-such-prog"), "start_failed", 1),
        (("new", "--no-such-option"), "usage", 2),
        (("lss",), "usage", 2),
    ],
)
def test_errors_are_json_on_demand(
    world: World, args: tuple[str, ...], code: str, status: int
) -> None:
    done = world.run(args[0], "--json", *args[1:], ok=False)
    assert (done.returncode, done.stdout) == (status, "")
    error = json.loads(done.stderr)["error"]
    assert set(error) == {"code", "message"}
    assert error["code"] == code
    assert error["message"]


@pytest.mark.parametrize(
    "command", [("sh", "-c", "exit 42"), ("./no-such-prog",)], ids=["dies", "missing"]
)
def test_an_error_after_narration_is_json_alone(world: World, command: tuple[str, ...]) -> None:
    done = world.run("new", "--json", "-n", "a", "--", *command, ok=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"]["code"] == "start_failed"


def test_an_agents_own_json_option_is_not_ours(world: World) -> None:
    said = refused(world, "new", "-n", "a", "--", "no-such-prog", "--json")
    assert_one_sentence(said, "no-such-prog")


def test_an_interrupted_new_is_status_130_and_leaves_nothing(world: World) -> None:
    (world.home / "config.toml").write_text("[setup]\nrun = ['touch running; sleep 1000']\n")
    process = subprocess.Popen(
        ["tmuxorch", "new", "-n", "a", *SLEEP],
        cwd=world.repo,
        env=world.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: list(world.worktrees.rglob("running")))
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert stdout == ""
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    world.assert_nothing_left()
    assert [row["reason"] for row in world.json("history")] == ["create_failed"]


def test_a_closed_pipe_is_no_error(world: World) -> None:
    script = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo line $i; done; exec sleep 1000"
    world.tmux("-f", "/dev/null", "new-session", "-d", "-s", "mine")
    made = world.new("-n", "a", "--", "sh", "-c", script)
    wait_for(lambda: "line 5000" in world.screen(made["tmux"]["pane"]))
    done = subprocess.run(
        ["sh", "-c", "{ tmuxorch logs a; echo $? >&3; } 3>status | head -n 1"],
        cwd=world.repo,
        env=world.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert (world.repo / "status").read_text() == "0\n"
