"""A worker from `new` to `restart`, through the installed command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import World, wait_for

SLEEP = ("--", "sleep", "1000")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|\+00:00)")
TYPES: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "name": str,
    "repo": str,
    "task": str,
    "agent": str,
    "kind": str,
    "state": str,
    "status": str,
    "status_since": (str, type(None)),
    "seen": type(None),
    "merged": type(None),
    "usage": type(None),
    "question": (dict, type(None)),
    "branch": str,
    "base": str,
    "base_commit": str,
    "worktree": str,
    "tmux": dict,
    "process": dict,
    "exit": type(None),
    "restarts": int,
    "created_at": str,
    "started_at": str,
    "ended_at": type(None),
    "last_activity_at": (str, type(None)),
}


def words_of_screen(world: World, worker: dict[str, Any]) -> str:
    return " ".join(world.screen(worker["tmux"]["pane"]).split())


def write_in(worker: dict[str, Any], name: str, text: str) -> Path:
    path = Path(worker["worktree"]) / name
    path.write_text(text)
    return path


# -- new ----------------------------------------------------------------------------------


def test_new_prints_exactly_the_promised_object(world: World) -> None:
    made = world.new("-n", "fix", "repair the door", *SLEEP)
    assert set(made) == set(TYPES)
    for key, type_ in TYPES.items():
        assert isinstance(made[key], type_), key
    assert set(made["tmux"]) == {"socket", "session", "window", "pane"}
    assert set(made["process"]) == {"pid", "shim_pid", "alive"}
    assert (made["name"], made["task"], made["agent"]) == ("fix", "repair the door", "sleep")
    assert (made["kind"], made["state"], made["restarts"]) == ("worker", "running", 0)
    assert made["status"] in {"starting", "working", "idle", "waiting"}
    assert made["repo"] == str(world.repo)
    assert (made["branch"], made["base"]) == ("tmuxorch/fix", "main")
    assert made["base_commit"] == world.git("rev-parse", "HEAD").strip()
    assert made["worktree"] in world.linked_worktrees()
    assert made["tmux"]["socket"] == world.socket
    assert re.fullmatch(r"@\d+", made["tmux"]["window"])
    assert re.fullmatch(r"%\d+", made["tmux"]["pane"])
    assert made["process"]["alive"] is True
    assert psutil.Process(made["process"]["pid"]).ppid() == made["process"]["shim_pid"]
    for key in ("created_at", "started_at"):
        assert TIME.fullmatch(made[key]), key
    [window] = [w for w in world.server.windows if w.window_id == made["tmux"]["window"]]
    assert window.window_name == "fix"
    assert window.session_name == made["tmux"]["session"]


def test_new_prints_the_name_alone_on_stdout(world: World) -> None:
    done = world.run("new", "Repair the front door", *SLEEP)
    [agent] = world.json("ls")
    assert done.stdout == f"{agent['name']}\n"
    assert agent["worktree"] in done.stderr


def test_quiet_says_nothing_but_data(world: World) -> None:
    done = world.run("new", "-q", "-n", "a", *SLEEP)
    assert (done.stdout, done.stderr) == ("a\n", "")
    done = world.run("rm", "--quiet", "a")
    assert (done.stdout, done.stderr) == ("", "")


def test_the_agent_knows_who_it_is_and_what_to_do(world: World) -> None:
    task = "first line\n  'second' \"line\" $HOME `id` #(id) ü"
    script = 'cp "$TMUXORCH_TASK_FILE" task; echo "$TMUXORCH_AGENT_ID $TMUXORCH_NAME $PWD" >me; '
    made = world.new("-n", "who", task, "--", "sh", "-c", script + "exec sleep 1000")
    tree = Path(made["worktree"])
    wait_for((tree / "me").exists)
    assert (tree / "me").read_text() == f"{made['id']} who {tree}\n"
    assert (tree / "task").read_text() == task


def test_the_task_placeholder_becomes_one_argument(world: World) -> None:
    task = "two words; 'quotes' \"and\" $(touch pwned)\nnew line {task}"
    script = 'printf "%s|" "$#" "$1" "$2" >args; exec sleep 1000'
    made = world.new("-n", "one", task, "--", "sh", "-c", script, "sh", "{task}", "a={task}")
    args = Path(made["worktree"]) / "args"
    wait_for(lambda: args.exists() and args.read_text())
    assert args.read_text() == f"2|{task}|a={task}|"
    assert not (Path(made["worktree"]) / "pwned").exists()


def test_the_task_comes_from_a_file_or_standard_input(world: World) -> None:
    text = "line one\n\tline two\nünïcode\n"
    (world.home / "task.txt").write_text(text)
    a = world.new("-n", "a", "-f", str(world.home / "task.txt"), *SLEEP)
    b = world.new("-n", "b", "-f", "-", *SLEEP, stdin=text)
    assert a["task"] == b["task"] == text.removesuffix("\n")


def test_the_base_may_be_a_branch_tag_commit_or_remote_branch(world: World) -> None:
    first = world.git("rev-parse", "HEAD").strip()
    world.git("tag", "-a", "v1", "-m", "one")
    world.git("branch", "side")
    world.git("commit", "-q", "--allow-empty", "-m", "second")
    other = world.make_repo("other")
    world.git("checkout", "-q", "-b", "theirs", cwd=other)
    world.git("remote", "add", "origin", str(other))
    world.git("fetch", "-q", "origin")
    theirs = world.git("rev-parse", "HEAD", cwd=other).strip()
    wanted = {"side": first, "v1": first, first[:10]: first, "origin/theirs": theirs}
    for n, (base, commit) in enumerate(wanted.items()):
        made = world.new("-n", f"w{n}", "-b", base, "--no-wait", *SLEEP)
        assert made["base_commit"] == commit, base
        head = world.git("rev-parse", "HEAD", cwd=Path(made["worktree"])).strip()
        assert head == commit, base
    world.run("rm", "w0", "w1", "w2", "w3")
    world.assert_nothing_left()


def test_an_existing_branch_is_worked_on_and_never_deleted(world: World) -> None:
    world.git("branch", "mine")
    made = world.new("-n", "a", "--branch", "mine", *SLEEP)
    assert made["branch"] == "mine"
    assert world.git("branch", "--show-current", cwd=Path(made["worktree"])) == "mine\n"
    world.run("rm", "-y", "a")
    assert "mine" in world.branches()
    world.assert_nothing_left()


def test_a_branch_of_ones_own_naming_is_made(world: World) -> None:
    made = world.new("-n", "a", "--branch", "feature/door", *SLEEP)
    assert made["branch"] == "feature/door"
    world.run("rm", "a")
    assert world.branches() == ["main"]


def test_no_wait_returns_with_a_running_process(world: World) -> None:
    made = world.new("-n", "a", "--no-wait", *SLEEP)
    assert made["process"]["alive"] is True
    assert made["state"] == "running"


def test_the_kind_is_kept(world: World) -> None:
    assert world.new("-n", "a", "--kind", "persistent", *SLEEP)["kind"] == "persistent"
    assert world.json("show", "a")["kind"] == "persistent"


def test_a_program_that_succeeds_at_once_is_done_not_failed(world: World) -> None:
    made = world.new("-n", "quick", "--", "sh", "-c", "echo ready")
    shown = wait_for(lambda: [a for a in world.json("ls") if a["state"] == "exited"])[0]
    assert (shown["id"], shown["status"]) == (made["id"], "done")
    assert shown["exit"] == {"code": 0, "signal": None}
    assert "ready" in world.run("logs", "quick").stdout


def test_a_killed_agent_is_crashed_with_its_signal(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    psutil.Process(made["process"]["pid"]).kill()
    shown = wait_for(lambda: [a for a in world.json("ls") if a["exit"]])[0]
    assert (shown["status"], shown["exit"]) == ("crashed", {"code": None, "signal": 9})
    assert shown["process"]["alive"] is False


# -- ls and show --------------------------------------------------------------------------


def test_ls_lists_one_repository_and_all_on_demand(world: World) -> None:
    other = world.make_repo("other")
    world.new("-n", "here", "task of here", *SLEEP)
    world.new("-n", "there", "task of there", *SLEEP, cwd=other)
    assert [a["name"] for a in world.json("ls")] == ["here"]
    assert [a["name"] for a in world.json("ls", cwd=other)] == ["there"]
    assert [a["name"] for a in world.json("ls", "--repo", str(other))] == ["there"]
    assert [a["name"] for a in world.json("ls", "--all")] == ["here", "there"]
    assert [a["name"] for a in world.json("ls", cwd=world.home)] == ["here", "there"]
    text = world.run("ls").stdout
    assert "here" in text
    assert "task of here" in text
    assert "there" not in text
    assert "\x1b" not in text
    assert "task of there" in world.run("ls", "--all").stdout


def test_ls_in_a_workers_worktree_lists_its_repository(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    assert [a["name"] for a in world.json("ls", cwd=Path(made["worktree"]))] == ["a"]
    assert [a["name"] for a in world.json("ls", cwd=world.repo / "src")] == ["a"]


def test_ls_of_nothing_says_how_to_begin_and_makes_nothing(world: World) -> None:
    assert world.json("ls") == []
    assert "tmuxorch new" in world.run("ls").stdout
    assert not world.state.exists()


def test_ls_new_and_show_print_the_same_object(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    [listed] = world.json("ls")
    shown = world.json("show", "a")
    health = shown.pop("health")
    assert made == listed == shown
    assert set(health) == {"window", "process", "shim", "worktree"}
    text = world.run("show", "a").stdout
    assert made["worktree"] in text
    assert made["tmux"]["pane"] in text


def test_a_task_with_escapes_cannot_speak_to_the_terminal(world: World) -> None:
    task = "evil \x1b]0;title\x07 \x1b[2J task"
    world.new("-n", "a", task, *SLEEP)
    assert world.json("ls")[0]["task"] == task
    for command in (("ls",), ("show", "a")):
        assert "\x1b" not in world.run(*command).stdout


# -- names --------------------------------------------------------------------------------


def test_a_unique_prefix_of_name_or_id_is_enough(world: World) -> None:
    made = world.new("-n", "front-door", *SLEEP)
    world.new("-n", "back-door", *SLEEP)
    for said in ("front-door", "fr", made["id"], made["id"][:6]):
        assert world.json("show", said)["id"] == made["id"], said


def test_an_ambiguous_prefix_lists_its_candidates(world: World) -> None:
    a = world.new("-n", "door-a", *SLEEP)
    b = world.new("-n", "door-b", *SLEEP)
    done = world.run("stop", "door", ok=False)
    assert done.returncode == 1
    for said in ("door-a", "door-b", a["id"], b["id"]):
        assert said in done.stderr
    assert all(agent["process"]["alive"] for agent in world.json("ls"))


def test_two_repositories_may_each_have_the_same_name(world: World) -> None:
    other = world.make_repo("other")
    a = world.new("-n", "same", *SLEEP)
    b = world.new("-n", "same", *SLEEP, cwd=other)
    assert world.json("show", "same")["id"] == a["id"]
    assert world.json("show", "same", cwd=other)["id"] == b["id"]
    done = world.run("show", "same", cwd=world.home, ok=False)
    assert done.returncode == 1
    assert a["id"] in done.stderr
    assert b["id"] in done.stderr


def test_equal_tasks_get_names_of_their_own(world: World) -> None:
    names = [world.new("Repair the door", "--no-wait", *SLEEP)["name"] for _ in range(3)]
    assert len(set(names)) == 3


# -- logs and diff ------------------------------------------------------------------------


def test_logs_are_there_while_it_runs_when_stopped_and_when_removed(world: World) -> None:
    script = "i=0; while [ $i -lt 120 ]; do i=$((i+1)); echo line $i; done; exec sleep 1000"
    made = world.new("-n", "a", "--", "sh", "-c", script)
    wait_for(lambda: "line 120" in words_of_screen(world, made))
    every = [f"line {n}" for n in range(1, 121)]
    assert world.run("logs", "a").stdout.splitlines() == every
    assert world.run("logs", "a", "-n", "3").stdout.splitlines() == every[-3:]
    world.run("stop", "a")
    assert world.run("logs", "a").stdout.splitlines()[-100:] == every[-100:]
    world.run("rm", "a")
    assert world.run("logs", "a", "-n", "100").stdout.splitlines() == every[-100:]


def test_diff_shows_all_kinds_of_change_as_one(world: World) -> None:
    made = world.new("-n", "a", *SLEEP)
    tree = Path(made["worktree"])
    write_in(made, "committed.txt", "committed\n")
    world.git("add", ".", cwd=tree)
    world.git("commit", "-q", "-m", "work", cwd=tree)
    write_in(made, "staged.txt", "staged\n")
    world.git("add", ".", cwd=tree)
    write_in(made, "README", "unstaged\n")
    write_in(made, "untracked.txt", "untracked\n")
    write_in(made, "ignored.log", "ignored\n")
    before = world.git("status", "--porcelain=v2", cwd=tree)
    text = world.run("diff", "a").stdout
    for word in ("committed", "staged", "unstaged", "untracked"):
        assert text.count(f"\n+{word}\n") == 1, word
    assert "ignored" not in text
    stat = world.run("diff", "a", "--stat").stdout
    for name in ("committed.txt", "staged.txt", "README", "untracked.txt"):
        assert name in stat
    assert "4 files changed" in stat
    assert world.git("status", "--porcelain=v2", cwd=tree) == before


# -- stop and restart ---------------------------------------------------------------------


def test_stop_ends_process_and_window_and_keeps_the_rest(world: World) -> None:
    made = world.new("-n", "a", "--", "sh", "-c", "sleep 1000 & exec sleep 1000")
    write_in(made, "work.txt", "work\n")
    stopped = world.json("stop", "a")
    assert world.marked_panes() == []
    assert world.processes(made["id"]) == []
    assert (Path(made["worktree"]) / "work.txt").exists()
    assert (stopped["state"], stopped["status"]) == ("exited", "stopped")
    assert TIME.fullmatch(stopped["ended_at"])
    assert stopped["exit"] is not None
    assert [a["id"] for a in world.json("ls")] == [made["id"]]
    again = world.run("stop", "a", ok=False)
    assert again.returncode == 1
    assert "not running" in again.stderr


def test_restart_starts_it_again_in_the_same_worktree(world: World) -> None:
    made = world.new("-n", "a", "the task", *SLEEP)
    write_in(made, "work.txt", "work\n")
    world.run("stop", "a")
    again = world.json("restart", "a")
    assert (again["id"], again["worktree"]) == (made["id"], made["worktree"])
    assert again["restarts"] == 1
    assert again["process"]["alive"] is True
    assert again["process"]["pid"] != made["process"]["pid"]
    assert (again["exit"], again["ended_at"]) == (None, None)
    assert (Path(made["worktree"]) / "work.txt").read_text() == "work\n"
    twice = world.json("restart", "a", "--fresh")
    assert twice["restarts"] == 2
    assert not psutil.pid_exists(again["process"]["pid"])
    assert world.marked_panes() == [made["id"]]


def test_a_failing_restart_says_why_and_keeps_the_worktree(world: World) -> None:
    made = world.new("-n", "a", "--", "sh", "-c", "[ -e broken ] && echo no luck && exit 7; cat")
    write_in(made, "broken", "")
    done = world.run("restart", "a", ok=False)
    assert done.returncode == 1
    assert "exit code 7" in done.stderr
    assert "no luck" in done.stderr
    [row] = world.json("ls")
    assert (row["state"], row["status"]) == ("exited", "crashed")
    assert (Path(made["worktree"]) / "broken").exists()
    assert world.marked_panes() == []


def test_an_agent_profile_from_the_config_gets_task_and_environment(world: World) -> None:
    (world.home / "config.toml").write_text(
        '[agents.mine]\ncommand = ["sh", "-c", "printf %s \\"$GREETING $1\\" >said; cat", "sh", '
        '"{task}"]\nenv = { GREETING = "hello" }\n'
    )
    made = world.new("-n", "a", "-a", "mine", "big world")
    said = Path(made["worktree"]) / "said"
    wait_for(lambda: said.exists() and said.read_text())
    assert said.read_text() == "hello big world"
    assert made["agent"] == "mine"


@pytest.mark.parametrize("command", ["config", "history"])
def test_json_of_other_commands_is_json(world: World, command: str) -> None:
    json.loads(world.run(command, "--json").stdout)


def test_empty_submodules_are_told_with_what_fills_them(world: World) -> None:
    part = world.make_repo("part")
    world.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "part")
    world.git("commit", "-q", "-m", "part")
    said = world.run("new", "-n", "a", "--no-wait", "--", "sleep", "1000").stderr
    assert "git submodule update --init" in said
    (world.home / "config.toml").write_text(
        '[setup]\nrun = ["git -c protocol.file.allow=always submodule update --init -q"]\n'
    )
    made = world.new("-n", "b", "--no-wait", "--", "sleep", "1000")
    assert (Path(made["worktree"]) / "part" / "README").exists()
