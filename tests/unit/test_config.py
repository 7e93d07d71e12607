"""From TOML files to one configuration, and from a profile to a command."""

# ruff: noqa: RUF001 (screens are quoted with the characters the agents draw)

import errno
import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tmuxorch import config
from tmuxorch.config import Config, DeadPolicy, Origin, Profile, TaskBy
from tmuxorch.errors import ConfigInvalid, NotTrusted
from tmuxorch.model import Kind


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    return tmp_path / "repo"


def trust_all(_: str) -> bool:
    return True


def load_text(path: Path, text: str) -> Config:
    path.write_text(text)
    return config.load(str(path), None)


def problems(path: Path, text: str) -> list[str]:
    """What is wrong with a user's file, without the name of the file."""
    with pytest.raises(ConfigInvalid) as invalid:
        load_text(path, text)
    lines = invalid.value.message.split("\n")
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


class TestWithoutAnyFile:
    def test_the_documented_defaults_are_in_force(self, user_file: Path, repo: Path) -> None:
        loaded = config.load(str(user_file), str(repo))
        assert loaded.defaults == config.Defaults("claude", "tmuxorch/", "", Kind.WORKER)
        assert loaded.setup == config.Setup((), (), 600)
        assert loaded.cleanup == config.Cleanup(DeadPolicy.CLEAN, 120, 2)
        assert loaded.restart == config.Restart(5, 600, 1, 60, 60)
        assert (loaded.salvage.ignored_cap_mb, loaded.history.keep_days) == (256, 0)
        assert loaded.tmux.timeout_s == 10
        assert loaded.keys == {}

    def test_the_known_agents_have_a_profile(self, user_file: Path) -> None:
        agents = config.load(str(user_file), None).agents
        assert list(agents) == ["claude", "codex", "gemini", "aider", "opencode", "shell", "demo"]
        assert all(name == profile.name for name, profile in agents.items())
        assert agents["aider"].task is TaskBy.PASTE
        assert agents["shell"].task is TaskBy.NONE

    def test_an_empty_file_changes_nothing(self, user_file: Path, tmp_path: Path) -> None:
        defaults = config.load(str(tmp_path / "missing"), None)
        assert load_text(user_file, "") == defaults
        assert load_text(user_file, "\ufeff[keys]\n") == defaults
        assert config.load("/dev/null", None) == defaults


class TestTheUsersFile:
    def test_changes_what_it_names_and_nothing_else(self, user_file: Path) -> None:
        loaded = load_text(user_file, '[cleanup]\ndead = "never"\ngrace_s = 0.5\n')
        assert loaded.cleanup == config.Cleanup(DeadPolicy.NEVER, 120, 0.5)

    def test_changes_one_key_of_a_known_agent(self, user_file: Path, tmp_path: Path) -> None:
        loaded = load_text(user_file, '[agents.claude]\ncommand = ["my-claude"]\n')
        known = config.load(str(tmp_path / "missing"), None).agents["claude"]
        assert loaded.agents["claude"] == replace(known, command=("my-claude",))

    def test_adds_an_agent(self, user_file: Path) -> None:
        text = """
            [defaults]
            agent = "mine"
            kind = "persistent"
            [agents.mine]
            command = ["mine", ["-t", "{task}"]]
            task = "stdin"
            env = { A = "1", B = "" }
            busy = '^work\\w+$'
            region = 3
            [keys]
            remove = "d,delete"
        """
        loaded = load_text(user_file, text)
        assert loaded.agents["mine"] == Profile(
            name="mine",
            command=("mine", ("-t", "{task}")),
            kind=Kind.PERSISTENT,
            task=TaskBy.STDIN,
            busy=r"^work\w+$",
            region=3,
            env={"A": "1", "B": ""},
        )
        assert loaded.keys == {"remove": "d,delete"}

    def test_gives_the_kind_to_agents_without_one_of_their_own(self, user_file: Path) -> None:
        text = '[defaults]\nkind = "persistent"\n[agents.demo]\nkind = "worker"\n'
        loaded = load_text(user_file, text)
        assert loaded.agents["claude"].kind is Kind.PERSISTENT
        assert loaded.agents["demo"].kind is Kind.WORKER

    def test_can_take_a_built_in_pattern_and_resume_away(self, user_file: Path) -> None:
        loaded = load_text(user_file, '[agents.claude]\nresume = []\nbusy = ""\n')
        assert (loaded.agents["claude"].resume, loaded.agents["claude"].busy) == ((), "")


class TestTheRepositorysFile:
    def test_wins_over_the_users(self, user_file: Path, repo: Path) -> None:
        user_file.write_text('[cleanup]\ndead = "never"\ngrace_s = 9\n')
        (repo / ".tmuxorch.toml").write_text('[cleanup]\ndead = "always"\n')
        loaded = config.load(str(user_file), str(repo))
        assert (loaded.cleanup.dead, loaded.cleanup.grace_s) == (DeadPolicy.ALWAYS, 9)

    def test_adds_to_an_agents_environment(self, user_file: Path, repo: Path) -> None:
        user_file.write_text('[agents.claude.env]\nA = "user"\nB = "user"\n')
        (repo / ".tmuxorch.toml").write_text('[agents.claude.env]\nB = "repo"\n')
        loaded = config.load(str(user_file), str(repo), trusted=trust_all)
        assert loaded.agents["claude"].env == {"A": "user", "B": "repo"}

    def test_is_not_read_outside_a_repository(
        self, user_file: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (repo / ".tmuxorch.toml").write_text("broken")
        monkeypatch.chdir(repo)
        config.load(str(user_file), None)

    @pytest.mark.parametrize("section", ["salvage", "history", "tmux", "keys"])
    def test_does_not_decide_what_is_the_persons_own(
        self, user_file: Path, repo: Path, section: str
    ) -> None:
        (repo / ".tmuxorch.toml").write_text(f"[{section}]\n")
        with pytest.raises(ConfigInvalid, match=f"{section}: only your own config file can"):
            config.load(str(user_file), str(repo), trusted=trust_all)


RUNNING = [
    '[setup]\nrun = ["make"]\n',
    '[agents.claude]\ncommand = ["evil"]\n',
    '[agents.claude.env]\nLD_PRELOAD = "evil.so"\n',
    '[agents.claude]\nresume = ["evil"]\n',
    '[defaults]\nagent = "shell"\n',
    '[setup]\ncopy = [".env"]\n',
]
HARMLESS = [
    "",
    "[setup]\ncopy = []\nrun = []\n",
    '[defaults]\nbranch_prefix = "ai/"\nbase = "develop"\nkind = "worker"\n',
    '[cleanup]\ndead = "never"\n',
    "[agents.claude]\n",
]


class TestTrust:
    @pytest.mark.parametrize("text", RUNNING)
    def test_is_needed_for_a_file_that_runs_commands_or_copies_files(
        self, user_file: Path, repo: Path, text: str
    ) -> None:
        (repo / ".tmuxorch.toml").write_text(text)
        with pytest.raises(NotTrusted, match=r"\.tmuxorch\.toml wants to .*: look at"):
            config.load(str(user_file), str(repo))
        config.load(str(user_file), str(repo), trusted=trust_all)

    @pytest.mark.parametrize("text", HARMLESS)
    def test_is_not_asked_for_otherwise(self, user_file: Path, repo: Path, text: str) -> None:
        def must_not_be_asked(_: str) -> bool:
            raise AssertionError

        (repo / ".tmuxorch.toml").write_text(text)
        config.load(str(user_file), str(repo), trusted=must_not_be_asked)

    @pytest.mark.parametrize("text", RUNNING)
    def test_is_not_needed_for_the_users_own_file(self, user_file: Path, text: str) -> None:
        load_text(user_file, text)

    def test_is_for_exactly_this_content_in_this_repository(
        self, user_file: Path, repo: Path
    ) -> None:
        file = repo / ".tmuxorch.toml"
        file.write_text(RUNNING[0])
        digest = config.trust_digest(str(file), RUNNING[0].encode())
        assert re.fullmatch("[0-9a-f]{64}", digest)
        config.load(str(user_file), str(repo), trusted=digest.__eq__)

        file.write_text(RUNNING[0] + "#")
        with pytest.raises(NotTrusted):
            config.load(str(user_file), str(repo), trusted=digest.__eq__)

    def test_does_not_depend_on_how_the_repository_is_reached(self, repo: Path) -> None:
        (repo.parent / "link").symlink_to(repo)
        assert config.trust_digest(f"{repo}/.tmuxorch.toml", b"x") == (
            config.trust_digest(f"{repo.parent}/link/.tmuxorch.toml", b"x")
        )

    def test_is_not_borrowed_by_a_link_to_a_file_trusted_elsewhere(
        self, user_file: Path, repo: Path
    ) -> None:
        elsewhere = repo.parent / ".tmuxorch.toml"
        elsewhere.write_text(RUNNING[0])
        (repo / ".tmuxorch.toml").symlink_to(elsewhere)
        digest = config.trust_digest(str(elsewhere), RUNNING[0].encode())
        with pytest.raises(NotTrusted):
            config.load(str(user_file), str(repo), trusted=digest.__eq__)

    @pytest.mark.parametrize("data", [{"setup": "x"}, {"agents": 3}, {"defaults": []}])
    def test_of_a_malformed_file_can_be_asked_about(self, data: dict[str, object]) -> None:
        assert not config.needs_trust(data)


class TestAProblem:
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (
                'cleanup.dead = "maybe"',
                'cleanup.dead: expected one of clean, always, never; got "maybe"',
            ),
            ("cleanup.dead = 3", "cleanup.dead: expected one of clean, always, never; got 3"),
            ("cleanup = 3", "cleanup: expected a table; got 3"),
            (
                "cleanup.grace_s = true",
                "cleanup.grace_s: expected a number of seconds from 0 to 31536000; got true",
            ),
            (
                "restart.limit = -1",
                "restart.limit: expected a whole number from 0 to 999999; got -1",
            ),
            (
                'setup.run = "make"',
                'setup.run: expected a list of strings that are not empty; got "make"',
            ),
            ("defaults.base = 1979-05-27", "defaults.base: expected a string; got 1979-05-27"),
            (
                'defaults.agent = "clod"',
                "defaults.agent: expected one of aider, claude, codex, demo, gemini, opencode, "
                'shell; got "clod"',
            ),
            ('claenup.dead = "clean"', "claenup: unknown; did you mean cleanup?"),
            ("cleanup.daed = 1", "cleanup.daed: unknown; did you mean dead?"),
            ("agents.claude.comand = []", "agents.claude.comand: unknown; did you mean command?"),
            ("zzz = 1", "zzz: unknown"),
            ("agents = []", "agents: expected a table; got []"),
            ("agents.x = 1", "agents.x: expected a table; got 1"),
            ('agents.x.task = "none"', "agents.x.command: missing: what shall be run?"),
            (
                'agents."a b".command = ["x"]',
                'agents."a b": expected a name of up to 40 letters, digits, - and _',
            ),
            (
                "agents.x.command = []",
                "agents.x.command: expected a program and its arguments, such as "
                '["prog", ["--", "{task}"]]; got []',
            ),
            (
                "agents.claude.busy = '('",
                "agents.claude.busy: expected a regular expression (missing ), unterminated "
                'subpattern at position 0); got "("',
            ),
            (
                "agents.claude.env = 1",
                "agents.claude.env: expected a table of strings; got 1",
            ),
            ("agents.claude.env.A = 1", "agents.claude.env.A: expected a string; got 1"),
            (
                'agents.claude.env."A=B" = ""',
                'agents.claude.env."A=B": expected a name without =',
            ),
            ("keys.quit = 1", "keys.quit: expected a string; got 1"),
            (
                'defaults.base = "\\u0000"',
                'defaults.base: expected a string; got "\\u0000"',
            ),
            (
                '"\\u001b[31m\\u009b" = 1',
                '"\\u001b[31m\\u009b": unknown',
            ),
            (
                f"keys.quit = {['x' * 99]}",
                f'keys.quit: expected a string; got ["{"x" * 58}…',
            ),
        ],
    )
    def test_names_the_file_the_key_and_what_was_expected(
        self, user_file: Path, text: str, problem: str
    ) -> None:
        assert problems(user_file, text) == [problem]

    @pytest.mark.parametrize(
        ("key", "values"),
        [
            ("cleanup.grace_s", ["-1", "nan", "inf", '"2"', "1e99", "9" * 400]),
            ("tmux.timeout_s", ["0", "-0.0"]),
            ("history.keep_days", ["1.5", "true", "1000000"]),
            ("setup.copy", ['["/etc/passwd"]', '["../x"]', '["a/../../x"]', '[""]', "[1]"]),
            ("setup.run", ['[""]', '["a\\u0000"]', '[["x"]]']),
            ("defaults.kind", ['""', '"Worker"']),
            ("defaults.base", ['"-f"', '"a b"', '"a\\nb"']),
            (
                "defaults.branch_prefix",
                ['"/"', '"-x/"', '"a..b/"', '"a//b"', '"a b/"', '".a/"', '"a.lock/"', '"a\\n"'],
            ),
            ("agents.claude.kind", ['"x"', "1"]),
            ("agents.claude.region", ["0"]),
            ("agents.claude.task", ['""', '"file"']),
            (
                "agents.claude.command",
                ['"claude"', '[""]', '[["a"]]', "[1]", '["a", 1]', '["a", []]', '["a\\u0000"]'],
            ),
            ("agents.claude.resume", ['["a", [1]]', '["a", [["b"]]]', '["a", ["b\\u0000"]]']),
        ],
    )
    def test_is_any_value_that_could_not_work(
        self, user_file: Path, key: str, values: list[str]
    ) -> None:
        for value in values:
            assert [p.split(": ")[0] for p in problems(user_file, f"{key} = {value}")] == [key]

    def test_is_one_of_all_that_are_reported_at_once(self, user_file: Path, repo: Path) -> None:
        user_file.write_text('typo = 1\n[cleanup]\ndead = "x"\n[agents.a]\ncommand = 1\n')
        (repo / ".tmuxorch.toml").write_text('[defaults]\nagent = "a"\nkind = 3\n')
        with pytest.raises(ConfigInvalid) as invalid:
            config.load(str(user_file), str(repo))
        assert [line.split(": ")[:2] for line in invalid.value.message.split("\n")] == [
            [str(user_file), "typo"],
            [str(user_file), "cleanup.dead"],
            [str(user_file), "agents.a.command"],
            [f"{repo}/.tmuxorch.toml", "defaults.kind"],
        ]

    def test_shows_the_home_directory_as_a_tilde(
        self, user_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(user_file.parent))
        user_file.write_text("typo = 1")
        with pytest.raises(ConfigInvalid, match=r"^~/config\.toml: typo: unknown"):
            config.load(str(user_file), None)


def make_a_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


class TestAFileThatIsNotToml:
    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"[cleanup]\ndead = \n", "not valid TOML: Invalid value (at line 2, column 8)"),
            (b"a = 1\na = 2", "not valid TOML: Cannot overwrite a value (at end of document)"),
            (b"\x7fELF\x00\x01", "not valid TOML: Invalid statement (at line 1, column 1)"),
            (b"a = 1\nb = '\xff'", "not UTF-8 text (at line 2)"),
            (b"a = " + b"[" * 9999, "nested too deeply"),
            (b"a = " + b"9" * 9999, "not valid TOML: Exceeds the limit"),
            (b"#" * 1_000_001, "expected at most 1000000 bytes"),
        ],
    )
    def test_is_reported_with_the_place(
        self, user_file: Path, content: bytes, problem: str
    ) -> None:
        user_file.write_bytes(content)
        with pytest.raises(ConfigInvalid) as invalid:
            config.load(str(user_file), None)
        assert invalid.value.message.startswith(f"{user_file}: {problem}")

    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            (Path.mkdir, "expected a file; got something else"),
            (os.mkfifo, "expected a file; got something else"),
            (make_a_link_to_itself, f"cannot be read: {os.strerror(errno.ELOOP)}"),
        ],
    )
    def test_or_no_file_at_all_is_reported(
        self, user_file: Path, make: Callable[[Path], None], problem: str
    ) -> None:
        make(user_file)
        with pytest.raises(ConfigInvalid) as invalid:
            config.load(str(user_file), None)
        assert invalid.value.message == f"{user_file}: {problem}"

    def test_does_not_hide_the_problems_of_the_other_file(
        self, user_file: Path, repo: Path
    ) -> None:
        user_file.write_text("=")
        (repo / ".tmuxorch.toml").write_text("typo = 1")
        with pytest.raises(ConfigInvalid, match=r"(?s)not valid TOML.*typo: unknown"):
            config.load(str(user_file), str(repo))


def profile(**changes: object) -> Profile:
    plain = Profile(name="x", command=("prog",), kind=Kind.WORKER)
    return replace(plain, **changes)  # type: ignore[arg-type]


def command(of: Profile, task: str = "do it", *, resume: bool = False) -> tuple[str, ...]:
    return config.build_command(
        of, task=task, conversation="c-1", name="n", worktree="/w", resume=resume
    )


NASTY = "- a 'b' \"c\" $HOME `id`\n{name} {task} {x} %s \\ é"


class TestACommand:
    def test_gets_the_task_as_one_argument_unchanged(self) -> None:
        assert command(profile(command=("p", "-m", "{task}")), NASTY) == ("p", "-m", NASTY)
        assert command(profile(command=("p", "say {task}!")), NASTY) == ("p", f"say {NASTY}!")

    def test_gets_the_task_at_its_end_if_it_does_not_say_where(self) -> None:
        assert command(profile()) == ("prog", "do it")
        assert command(profile(), "") == ("prog",)

    @pytest.mark.parametrize("task", ["stdin", "paste", "none"])
    def test_does_not_get_a_task_that_travels_otherwise(self, task: str) -> None:
        assert command(profile(task=TaskBy(task))) == ("prog",)

    def test_loses_the_argument_or_group_of_an_empty_task(self) -> None:
        assert command(profile(command=("p", "{task}", "z")), "") == ("p", "z")
        assert command(profile(command=("p", ("-i", "{task}"), "z")), "") == ("p", "z")
        assert command(profile(command=("p", ("-i", "{task}"))), "t") == ("p", "-i", "t")
        assert command(profile(command=("p", ("-x", "y"), "{task}")), "") == ("p", "-x", "y")

    def test_keeps_an_argument_that_only_mentions_an_empty_task(self) -> None:
        assert command(profile(command=("sh", "-c", "f '{task}'")), "") == ("sh", "-c", "f ''")

    def test_knows_conversation_name_and_worktree(self) -> None:
        parts = ("p", "{conversation}", "--n={name}", "{worktree}/x", "{other}", ("{task}",))
        assert command(profile(command=parts)) == (
            *("p", "c-1", "--n=n", "/w/x", "{other}", "do it"),
        )

    def test_continues_a_conversation_without_repeating_the_task(self) -> None:
        resumable = profile(resume=("p", "-r", "{conversation}"))
        assert command(resumable, resume=True) == ("p", "-r", "c-1")
        assert command(resumable, resume=False) == ("prog", "do it")

    def test_starts_afresh_if_there_is_no_way_to_continue(self) -> None:
        assert command(profile(), resume=True) == ("prog", "do it")

    def test_can_be_resumed_if_the_conversation_it_asks_for_is_known(self) -> None:
        by_id = profile(resume=("p", ("-r", "{conversation}")))
        assert by_id.can_resume("c-1")
        assert not by_id.can_resume(None)
        assert not profile(resume=("p", "--last")).can_resume(None)
        assert profile(resume=("p", "--last")).can_resume("latest")
        assert not profile().can_resume("c-1")

    def test_chooses_its_conversation_if_it_is_told_which(self) -> None:
        chosen = profile(command=("p", ("--id", "{conversation}")))
        assert chosen.new_conversation() != chosen.new_conversation()
        assert profile(resume=("p", "--last")).new_conversation() == "latest"
        assert profile(resume=("p", "{conversation}")).new_conversation() is None

    def test_of_the_persons_own_has_only_its_task_filled_in(self) -> None:
        argv = ("sh", "-c", "echo {task} {name}", "{task}", "{conversation}")
        assert config.build_custom_command(argv, NASTY) == (
            *("sh", "-c", f"echo {NASTY} {{name}}", NASTY, "{conversation}"),
        )
        assert config.build_custom_command(("a", "{task}"), "") == ("a", "")


@pytest.fixture(scope="module")
def built_in() -> Config:
    return config.load("/nonexistent/config.toml", None)


class TestABuiltInAgent:
    @pytest.mark.parametrize(
        ("agent", "with_task", "without", "resumed"),
        [
            (
                "claude",
                ("claude", "--session-id", "c-1", "--", "- x"),
                ("claude", "--session-id", "c-1"),
                ("claude", "--resume", "c-1"),
            ),
            ("codex", ("codex", "--", "- x"), ("codex",), ("codex", "resume", "--last")),
            (
                "gemini",
                ("gemini", "--prompt-interactive=- x"),
                ("gemini",),
                ("gemini", "--resume", "latest"),
            ),
            ("aider", ("aider",), ("aider",), ("aider", "--restore-chat-history")),
            ("opencode", ("opencode", "--prompt=- x"), ("opencode",), None),
            (
                "shell",
                ("sh", "-c", 'exec "${SHELL:-/bin/sh}"'),
                ("sh", "-c", 'exec "${SHELL:-/bin/sh}"'),
                None,
            ),
        ],
    )
    def test_is_started_with_and_without_a_task_and_continued(
        self,
        built_in: Config,
        agent: str,
        with_task: tuple[str, ...],
        without: tuple[str, ...],
        resumed: tuple[str, ...] | None,
    ) -> None:
        profile = built_in.agents[agent]
        assert command(profile, "- x") == with_task
        assert command(profile, "") == without
        assert bool(profile.resume) == (resumed is not None)
        if resumed is not None:
            assert command(profile, "- x", resume=True) == resumed

    @pytest.mark.parametrize(
        ("agent", "pattern", "screen"),
        [
            ("claude", "trust", "Do you trust the files in this folder?\n/x\n❯ 1. Yes, proceed"),
            ("claude", "trust", "Security guide\n\n ❯ No, exit\n   Yes, I trust this folder"),
            ("claude", "busy", "✻ Pondering… (12s · ↑ 1.2k tokens · esc to interrupt)"),
            ("claude", "busy", "text\n✽ Pondering… (12s · thinking)\n\n❯"),
            ("claude", "waiting", "Do you want to proceed?\n ❯ 1. Yes\n   2. No"),
            ("claude", "waiting", "│ Do you want to make this edit to a.py? │"),
            ("claude", "ready", "────\n❯\n────\n  ? for shortcuts"),
            ("claude", "ready", "╭───╮\n│ >                │\n╰───╯"),
            ("claude", "resume_failed", "No conversation found with session ID: 979cab47"),
            ("codex", "trust", "  Do you trust the contents of this directory? Working with"),
            ("codex", "busy", "• Working (3s • esc to interrupt)"),
            ("codex", "waiting", "  Would you like to run the following command?"),
            ("codex", "waiting", "│Allow command?   "),
            ("codex", "ready", "\n› Ask Codex to do anything\n"),
            ("gemini", "trust", "Do you trust this folder?"),
            ("gemini", "busy", "⠏ Reading (esc to cancel, 4s)"),
            ("gemini", "waiting", "⠏ Waiting for user confirmation..."),
            ("gemini", "ready", " >   Type your message or @path/to/file"),
            ("aider", "ready", "Git repo: .git\n────\n>"),
            ("aider", "ready", "────\narchitect multi>"),
            ("aider", "waiting", "Add .aider* to .gitignore (recommended)? (Y)es/(N)o [Yes]:"),
            ("opencode", "busy", "■■■⬝⬝  esc interrupt"),
            ("opencode", "waiting", "△ Permission required\n→ Read .env"),
            ("demo", "busy", "* Making a plan... (ctrl-c to stop)"),
            ("demo", "ready", "Done.\n>"),
        ],
    )
    def test_is_understood_from_its_screen(
        self, built_in: Config, agent: str, pattern: str, screen: str
    ) -> None:
        regex: str = getattr(built_in.agents[agent], pattern)
        assert re.search(regex, screen, re.MULTILINE)

    @pytest.mark.parametrize(
        ("agent", "pattern", "screen"),
        [
            ("claude", "busy", "✻ Crunched for 12s\n\n❯"),
            ("claude", "waiting", "I fixed it.\n\n❯ \n  ? for shortcuts"),
            ("claude", "ready", "compare a > b and x->y"),
            ("codex", "waiting", "› Ask Codex to do anything"),
            ("aider", "ready", "> fix the bug\nWaiting for gpt-5"),
            ("demo", "busy", "Done.\n> "),
        ],
    )
    def test_is_not_misread(self, built_in: Config, agent: str, pattern: str, screen: str) -> None:
        regex: str = getattr(built_in.agents[agent], pattern)
        assert not re.search(regex, screen, re.MULTILINE)

    def test_called_demo_shows_its_task_and_repeats_what_it_is_told(
        self, built_in: Config, tmp_path: Path
    ) -> None:
        impatient = tmp_path / "sleep"
        impatient.write_text("#!/bin/sh\n")
        impatient.chmod(0o755)
        ran = subprocess.run(
            command(built_in.agents["demo"], "it's\n%s"),
            input="hello  %s \\n\n-n\nexit\nnot read\n",
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        assert ran.stdout.startswith("Task: it's\n%s\n")
        assert "Making a plan... (ctrl-c to stop)" in ran.stdout
        assert ran.stdout.endswith("Done.\n> You said: hello  %s \\n\n> You said: -n\n> ")

    def test_called_shell_is_the_persons_own(self, built_in: Config) -> None:
        ran = subprocess.run(
            command(built_in.agents["shell"]),
            env={"SHELL": "/bin/echo", "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout == "\n"


CUSTOM = """
[defaults]
kind = "persistent"
[agents.claude]
env = { "odd key" = "\\u007f \\u009b \\" \\\\ 🚀" }
[agents.mine]
command = ["mine", ["--", "{task}"]]
resume_failed = '\\d "x"'
[keys]
"a.b" = "x,y"
"""


class TestTheEffectiveConfiguration:
    def test_is_shown_as_toml_that_loads_to_the_same(self, user_file: Path) -> None:
        loaded = load_text(user_file, CUSTOM)
        assert load_text(user_file, config.dump(loaded)) == loaded

    def test_is_safe_to_show_on_a_terminal(self, user_file: Path) -> None:
        shown = config.dump(load_text(user_file, CUSTOM))
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)

    def test_says_where_each_value_comes_from(self, user_file: Path, repo: Path) -> None:
        user_file.write_text(CUSTOM)
        (repo / ".tmuxorch.toml").write_text('[cleanup]\ndead = "never"\n')
        lines = config.dump(config.load(str(user_file), str(repo))).splitlines()
        assert 'dead = "never"  # repo file' in lines
        assert "grace_s = 2.0  # built-in" in lines
        assert '"a.b" = "x,y"  # user file' in lines
        claude = lines[lines.index("[agents.claude]") :]
        assert claude[2] == 'kind = "persistent"  # user file'
        assert claude[claude.index("[agents.claude.env]") + 1].endswith("# user file")

    def test_knows_the_source_of_each_key(self, user_file: Path) -> None:
        sources = load_text(user_file, CUSTOM).sources
        assert sources["defaults", "kind"] is Origin.USER
        assert sources["defaults", "agent"] is Origin.BUILT_IN

    def test_is_plain_data_for_json(self, user_file: Path) -> None:
        shown = json.loads(json.dumps(config.as_json(load_text(user_file, CUSTOM))))
        assert shown["agents"]["mine"]["command"] == ["mine", ["--", "{task}"]]
        assert shown["cleanup"] == {"dead": "clean", "never_started_s": 120, "grace_s": 2}
        assert "sources" not in shown
        assert "name" not in shown["agents"]["mine"]


class TestTheTemplate:
    def test_changes_nothing_as_it_is_written(self, user_file: Path, built_in: Config) -> None:
        loaded = load_text(user_file, config.template())
        assert loaded == built_in
        assert set(loaded.sources.values()) == {Origin.BUILT_IN}

    def test_with_every_setting_uncommented_is_the_defaults(
        self, user_file: Path, built_in: Config
    ) -> None:
        loaded = load_text(user_file, re.sub(r"(?m)^#(?=\S)", "", config.template()))
        assert loaded == built_in
        shown = set(loaded.sources.values())
        assert shown == {Origin.USER}

    def test_explains_every_key(self, built_in: Config) -> None:
        tables = config.as_json(built_in)
        tables["agents.claude"] = tables.pop("agents")["claude"]
        explained: dict[str, set[str]] = {}
        section, before = "", ""
        for line in config.template().splitlines():
            if line.startswith("["):
                section = line.strip("[]")
                explained[section] = set()
            elif (found := re.match(r"#(\w+) = ", line)) and before.startswith("# "):
                explained[section].add(found[1])
            before = line
        assert {name: explained[name] for name in tables} == {k: set(t) for k, t in tables.items()}
