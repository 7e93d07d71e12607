"""Nothing that came from outside is obeyed by the terminal it is shown on: raw bytes, counted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.agents import agent as make_agent
from tests.conftest import World, wait_for
from tests.hostile import ARGUMENTS, CSI, LINES, STRINGS, TEXTS, find_obeyed, on_terminal
from tmuxorch.adapters.store.records import open_store
from tmuxorch.adapters.store.rows import columns_of_entry, entry_of, insertion
from tmuxorch.config.rules import quote
from tmuxorch.model import AgentId, Exit, Kind, Reason, State
from tmuxorch.paths import ensure_private

# Many calls in one process: each does all that a command does but start Python.
DRIVER = """
import json, os, sys
from tmuxorch.cli.main import main
for args in json.load(open(sys.argv[1])):
    sys.argv = ["tmuxorch", *args]
    try:
        main(args)
    except SystemExit:
        pass
"""


def shown(world: World, *args: str, colours: bool = False, **kwargs: Any) -> bytes:
    """What the command writes to a terminal, of which nothing is obeyed."""
    env = {**world.environ, **kwargs.pop("env", {})}
    if not colours:
        env["NO_COLOR"] = "1"
    argv = kwargs.pop("argv", ["tmuxorch"])
    kwargs.setdefault("cwd", world.repo)
    _, data = on_terminal([*argv, *args], env=env, **kwargs)
    assert find_obeyed(data, colours=colours) == []
    return data


def drive(world: World, calls: list[list[str]]) -> bytes:
    path = world.directory / "calls"
    path.write_text(json.dumps(calls))
    return shown(world, argv=[sys.executable, "-c", DRIVER, str(path)])


def test_no_argument_comes_back_as_it_was(world: World) -> None:
    world.new("-n", "a", "--no-wait", "--", "sleep", "1000")
    everywhere = [
        call for text in ARGUMENTS for call in ([text], ["show", text], ["ls", f"--x{text}"])
    ]
    said = drive(world, everywhere)
    assert said.count(b"tmuxorch: ") > 2.9 * len(ARGUMENTS)
    assert re.findall(rb"[^\n]*this is a bug[^\n]*", said) == []
    said = drive(
        world,
        [
            call
            for text in ARGUMENTS[::20]
            for call in (
                ["restore", text],
                ["new", "-n", text, "task"],
                ["history", text],
                ["history", "--since", text],
                ["--repo", text, "ls", "--json"],
                ["new", "-a", text, "task"],
                ["new", "-f", text],
                ["report", "-q", text],
                ["new", "-b", text, "--", "true"],
                ["new", "--branch", text, "--", "true"],
                ["send", "a", text + "\x1b"],
                ["new", "-n", "x", "--", "false", text],
                ["new", "-n", "y", "--", text],
            )
        ],
    )
    assert re.findall(rb"[^\n]*this is a bug[^\n]*", said) == []


def bury(world: World, texts: list[str]) -> None:
    """A store in which every word that is not ours is hostile: agents, history, events."""
    ensure_private(str(world.state))
    store = open_store(str(world.state))
    for number, text in enumerate(texts):
        agent = make_agent(
            State.EXITED,
            id=AgentId(f"{number:012x}"),
            name=f"w{number}",
            repo=str(world.repo),
            task=text,
            agent=text,
            branch=text,
            base=text,
            worktree=f"/nowhere/{text}",
            command=(text,),
            conversation=text,
            exit=Exit(0, None),
        )
        store.add(agent)
        store.record(agent, "noted", text)
        entry = entry_of(
            id=AgentId(f"{number:011x}f"), name=f"r{number}", repo=f"/gone/{text}", task=text,
            agent=text, branch=text, base=text, base_commit="0" * 40, head_commit=None,
            reason=Reason.USER, exit=None, created_at=1.0, removed_at=time.time() - number,
            duration_s=1.0, commits=0, files_changed=0, insertions=0, deletions=0,
            salvage_ref=None, archive=None, branch_kept=True, restored_at=None, last_screen=text,
            kind=Kind.WORKER, command=(text,), conversation=text, worktree="/nowhere",
            branch_made=True, copied=(),
        )  # fmt: skip
        columns = columns_of_entry(entry)
        with store._write() as db:
            db.execute(insertion("history", columns), list(columns.values()))
    store.close()


def test_no_word_of_the_store_is_obeyed(world: World) -> None:
    bury(world, TEXTS)
    count = str(2 * len(TEXTS))
    for size in ((50, 200), (50, 40)):
        data = shown(world, "ls", size=size)
        assert data.count(b"\n") == len(TEXTS) + 2, "a line each, the heading, and the watcher"
    # Colours are our own: one for the status of each line, and its end.
    data = shown(world, "ls", "--all", colours=True)
    assert set(re.findall(rb"\x1b\[([0-9;]*)m", data)) <= {b"2;32", b"0"}
    shown(world, "ls", "--json")
    assert shown(world, "events", "-n", count).count(b"noted") == len(TEXTS)
    assert shown(world, "history", "-n", count).count(b"\n") == len(TEXTS) + 1
    shown(world, "events", "--json", "-n", count)
    some = range(0, len(TEXTS), 25)
    calls = [[verb, f"w{n}"] for n in some for verb in ("show", "why", "diff", "attach", "restart")]
    calls += [[verb, f"r{n}"] for n in some for verb in ("history", "logs", "restore", "why")]
    assert re.findall(rb"[^\n]*this is a bug[^\n]*", drive(world, calls)) == []


def test_columns_stand_under_each_other_whatever_is_in_them(world: World) -> None:
    bury(world, ["ascii", "\u65e5\u672c\u8a9e", "e\u0301" * 5, "\u200b\x1b", "\u2764\ufe0f"])
    rows = [line for line in shown(world, "ls").decode().split("\r\n") if line.startswith("done")]
    # The two columns before it hold the same text; each is cut down to what it takes.
    assert len(rows) == 5
    plain = rows[0].index("ascii", rows[0].index("ascii") + 1)
    wide = rows[1].index("\u65e5", rows[1].index("\u65e5") + 1)
    assert plain - wide == 3, "three characters that are two cells wide"


def write_files(top: Path, texts: list[str]) -> int:
    """A file for each text that can be a file's name, with all of them as its content."""
    made = 0
    for text in texts:
        name = os.fsencode(text.replace("/", "_"))[:200]
        if name not in (b".", b"..", b""):
            Path(os.fsdecode(os.path.join(os.fsencode(top), name))).write_bytes(name)
            made += 1
    return made


def test_no_work_of_an_agent_is_obeyed(world: World) -> None:
    everything = world.directory / "everything"
    everything.write_bytes("\n".join(STRINGS).encode("utf-8", "surrogatepass"))
    (world.home / "config.toml").write_text(
        f"[setup]\nrun = ['cat {everything}']\n[defaults]\nagent = 'shell'\n"
    )
    # A terminal obeys the rest itself, and keeps nothing of it.
    cells = world.directory / "cells"
    kept = [text for text in LINES if not re.search("[\x00-\x1f\x7f-\x9f]", text)]
    cells.write_text("\n".join([*kept, "that was all\n"]))
    task = "\n".join(TEXTS)[:60_000]
    said = shown(world, "new", "-n", "a", task, "--", "sh", "-c", f"cat {cells}; cat")
    assert said.count(rb"\x1b") > 200, "the output of the setup"
    worktree = Path(world.json("show", "a")["worktree"])
    write_files(worktree, [text for text in ARGUMENTS if "\0" not in text])
    world.git("commit", "-q", "--allow-empty", "-m", "\n".join(TEXTS[::9]), cwd=worktree)
    for text in LINES[::25]:
        world.git("commit", "-q", "--allow-empty", "-m", f"x{text}", cwd=worktree)
    (worktree / "README").write_bytes(everything.read_bytes())
    pane = world.json("show", "a")["tmux"]["pane"]
    wait_for(lambda: "that was all" in world.screen(pane), what="the text on the screen")
    assert b"that was all" in shown(world, "logs", "a")
    assert b"that was all" in shown(world, "logs", "a", colours=True)
    shown(world, "diff", "a")
    coloured = shown(world, "diff", "a", colours=True)
    assert b"\x1b[32m" in coloured
    assert b"\x1b[8m" not in coloured, "hidden text in a review"
    shown(world, "diff", "a", "--stat", colours=True)
    shown(world, "show", "a")
    said = shown(world, "rm", "a", steps=[(b"[y/N]", b"n\n")])
    assert b"Save this and remove a?" in said
    shown(world, "merge", "a", "--commit")
    shown(world, "doctor")


def test_diff_and_logs_are_exact_in_a_pipe(world: World) -> None:
    odd = b"caf\xe9 \x1b]0;t\x07 \xff\xfe \xc0\xaf \r\x0b\x0c \xe2\x80\xa8 end"
    made = world.new(
        "-n", "a", "--", "sh", "-c", "printf 'a\\357\\273\\277b \\342\\200\\256 c'; cat"
    )
    (Path(made["worktree"]) / "odd").write_bytes(odd + b"\n")
    diff = subprocess.run(
        ["tmuxorch", "diff", "a"],
        cwd=world.repo,
        env=world.environ,
        capture_output=True,
        check=True,
    )
    assert b"+" + odd + b"\n" in diff.stdout
    pane = made["tmux"]["pane"]
    wait_for(lambda: " c" in world.screen(pane))
    logs = subprocess.run(
        ["tmuxorch", "logs", "a"],
        cwd=world.repo,
        env=world.environ,
        capture_output=True,
        check=True,
    )
    assert logs.stdout == world.screen(pane).rstrip("\n").encode() + b"\n"
    assert "\u202e".encode() in logs.stdout
    assert find_obeyed(shown(world, "logs", "a")) == []


def test_no_setting_is_obeyed(world: World) -> None:
    quoted = [quote(text) for text in TEXTS]
    values = "".join(f"{q} = {q}\n" for q in quoted if "=" not in q and "\\u0000" not in q)
    (world.home / "config.toml").write_text(f"[agents.shell.env]\n{values}[keys]\n{values}")
    said = shown(world, "config")
    assert said.count(b" = ") > 2 * 0.9 * len(TEXTS)
    printed = world.run("config").stdout
    (world.home / "config.toml").write_text(printed)
    assert world.run("config").stdout.replace("user file", "built-in") == printed.replace(
        "user file", "built-in"
    ), "what is printed means the same"
    wrong = "".join(f"{q} = {q}\n[{q}]\nx = [{q}]\n" for q in dict.fromkeys(quoted))
    (world.home / "config.toml").write_text(f"[defaults]\n{wrong}")
    assert b"unknown" in shown(world, "config")


def test_the_question_of_trust_shows_the_text_and_is_not_steered_by_it(world: World) -> None:
    comments = "".join(f"# {quote(text)[1:-1]}\n" for text in TEXTS)
    raw = "".join(f"# {c}\n" for c in ("\u202eabc", "\u200bx", "\u2066y", "\U000e0041z", "\x85"))
    file = world.repo / ".tmuxorch.toml"
    file.write_text(f"{comments}{raw}[setup]\ncopy = ['.env']\n")
    said = shown(world, "config", "--trust", steps=[(b"[y/N]", b"n\n")])
    assert rb"\u202eabc" in said
    assert b"copy = ['.env']" in said
    assert b"is not trusted" in said
    said = shown(world, "new", "-n", "a", "--", "sleep", "1000", steps=[(b"[y/N]", b"n\n")])
    assert rb"\u202eabc" in said
    file.write_bytes(b"# \x1b]0;t\x07 \xff\n[setup]\ncopy = ['.env']\n")
    assert rb"\x1b]0;t\x07 \xff" in shown(world, "config", "--trust", steps=[(b"[y/N]", b"n\n")])


def test_nothing_but_cells_leaves_the_screen(world: World) -> None:
    bury(world, TEXTS)
    steps = [
        (b" w1 ", b"\t"),
        (b"is not there", b"\t"),
        (b"noted", b"\t"),
        (b"restarted", b"y"),
        (b"why w0", b"q"),
        (b"? help", b"d"),
        (b"Remove w0?", b"n"),
        (b"? help", b"G"),
        (f" w{len(TEXTS) - 1} ".encode(), b"H"),
        (b"last screen", b"q"),
        (b"? help", b"n"),
        (b"New worker", b"\x1b[A"),
        # Of the earlier tasks only those are offered that are what they look like.
        ("\u2764".encode(), "\x1b[200~tr\u202euth\x9d0;t\x07\x1b[201~".encode()),
        (b"truth", b"\x11"),
    ]
    status, data = on_terminal(
        ["tmuxorch"], env=world.environ, cwd=world.repo, size=(40, 160), steps=steps
    )
    assert status == 0
    assert find_obeyed(CSI.sub(b"", data).replace(b"\r", b"")) == []
    assert data.count(rb"\x") > 100, "it was shown"


def test_paths_that_lie_around_are_shown_and_the_hint_clears_exactly_them(world: World) -> None:
    world.new("-n", "a", "--", "sleep", "1000")
    archive = world.state / "archive"
    archive.mkdir(mode=0o700, exist_ok=True)
    write_files(archive, [f"{text[:100]}.tar" for text in ARGUMENTS[::6]])
    names = sorted(os.listdir(archive))
    assert len(names) > 70
    said = shown(world, "sweep").decode()
    commands = re.findall(r"by hand with  (rm [^\r]*)\r\n", said)
    assert len(commands) == len(names)
    shown(world, "sweep", "--json")
    for command in commands:
        subprocess.run(["bash", "-c", command], check=True, cwd="/")
    assert os.listdir(archive) == []


def test_a_repository_with_a_hostile_name_is_as_good_as_any(world: World) -> None:
    for number, text in enumerate(("a\x1b]0;t\x07b", "new\nline", "\u202eoper", "#{pane_id}%s{}")):
        repo = world.make_repo(text)
        said = shown(world, "new", "-n", f"w{number}", "--", "sleep", "1000", cwd=repo)
        assert b"look at it with" in said
        for args in (["ls"], ["ls", "--all"], ["show", f"w{number}"], ["rm", "-y", f"w{number}"]):
            shown(world, *args, cwd=repo)
        shown(world, "history", f"w{number}", cwd=repo)
        assert b"no agents in" in shown(world, "ls", cwd=repo)
        shown(world, "diff", "nobody", cwd=repo)
