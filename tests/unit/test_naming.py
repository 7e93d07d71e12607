"""Names people see, and the allow-lists behind them."""

import pytest

from tmuxorch.core import literal, naming
from tmuxorch.errors import BadName


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("Fix the login bug", "fix-login-bug"),
        ("please add dark mode to the settings page, with tests", "add-dark-mode-settings"),
        ("Don't panic!", "dont-panic"),
        ("Réparer l'été à Zürich", "reparer-lete-zurich"),
        ("fix: src/auth.py:42\nmore detail", "fix-src-auth-py"),
        ("- first\n- second", "first-second"),
        ("do it", "do-it"),
        ("internationalization internationalization", "internationalization"),
        ("x" * 100, "x" * 32),
        ("   \n\t indented " + " " * 1000, "indented"),
        ("修复登录", "worker"),
        ("🚀🚀", "worker"),
        ("", "worker"),
        ("../../etc/passwd; rm -rf $HOME", "etc-passwd-rm-rf"),
    ],
)
def test_a_name_is_the_first_telling_words_of_the_task(task: str, name: str) -> None:
    assert naming.name_from_task(task, ()) == name


def test_a_taken_name_is_numbered() -> None:
    assert naming.name_from_task("fix it now", {"fix"}) == "fix-2"
    assert naming.name_from_task("fix it now", {"fix", "fix-2", "fix-3"}) == "fix-4"


@pytest.mark.parametrize("name", ["a", "7", "fix-login-2", "a" * 40])
def test_a_good_name_is_accepted(name: str) -> None:
    assert naming.check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "-a", "Fix", "a b", "a.b", "a:b", "a/b", "..", "a\n", "é", "a" * 41, "\ud800"]
)
def test_a_bad_name_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(BadName, match="use up to 40 of a-z, 0-9 and -, beginning with a letter"):
        naming.check_name(name)


def test_a_bad_name_is_answered_with_a_good_one_and_no_control_characters() -> None:
    with pytest.raises(BadName) as refused:
        naming.check_name("Fix_\x1b[31mLogin")
    assert refused.value.message.startswith('"Fix_\\x1b[31mLogin" cannot be a name')
    assert refused.value.message.endswith('such as "fix-31mlogin"')


def test_branch_and_window_follow_the_name() -> None:
    assert naming.default_branch("fix", "tmuxorch/") == "tmuxorch/fix"
    assert naming.window_name("fix") == "fix"


@pytest.mark.parametrize("name", ["../x", "a:b", "-rf", ""])
def test_nothing_is_named_after_a_bad_name(name: str) -> None:
    with pytest.raises(BadName):
        naming.default_branch(name, "tmuxorch/")
    with pytest.raises(BadName):
        naming.window_name(name)
    with pytest.raises(BadName):
        naming.worktree_path("/trees", "/repo", name, "0123456789ab")


def test_a_session_is_named_after_the_repository() -> None:
    assert naming.session_name("/home/me/My.Project: two") == "tmuxorch-my-project-two-0408de"


def test_a_long_or_unreadable_repository_name_still_gives_a_session() -> None:
    assert naming.session_name("/" + "long-" * 9).startswith("tmuxorch-long-long-long-long-long-")
    assert len(naming.session_name("/" + "a" * 200)) == len("tmuxorch-") + 24 + 7
    assert naming.session_name("/项目").startswith("tmuxorch-repo-")
    assert naming.session_name("/\udcff").startswith("tmuxorch-repo-")
    assert naming.session_name("/").startswith("tmuxorch-repo-")


def test_repositories_of_the_same_name_have_sessions_of_their_own() -> None:
    assert naming.session_name("/a/repo") != naming.session_name("/b/repo")
    assert naming.session_name("/a/repo") == naming.session_name("/a/repo/")


def test_a_worktree_is_below_the_root_by_repository_name_and_id() -> None:
    path = naming.worktree_path("/trees/", "/a/Repo", "fix", "0123456789ab")
    label = naming.session_name("/a/Repo").removeprefix("tmuxorch-")
    assert path == f"/trees/{label}/fix-0123"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain\ttext\nüñí 漢字 🚀\u2028", None),
        ("", None),
        ("ab\x1b[2J", (2, "an escape character (U+001B)")),
        ("\x00", (0, "a NUL (U+0000)")),
        ("a\r\n", (1, "a carriage return (U+000D)")),
        ("\x7f", (0, "a delete character (U+007F)")),
        ("\x9b31m", (0, "a control character (U+009B)")),
        ("\x0b", (0, "a control character (U+000B)")),
        ("x\udcff", (1, "a byte that is not UTF-8 (U+DCFF)")),
    ],
)
def test_what_must_not_reach_a_terminal_is_found(text: str, found: tuple[int, str] | None) -> None:
    assert literal.find_control(text) == found


def test_what_must_not_reach_a_terminal_is_stripped() -> None:
    assert literal.strip_controls("a\x1b[2J\tb\r\n\x85\ud800é") == "a[2J\tb\né"


AGENTS = [
    ("fix", "aaaa11111111"),
    ("fix-login", "bbbb22222222"),
    ("bbbb22222222", "cccc33333333"),
    ("dead-code", "dddd44444444"),
    ("other", "dddd55555555"),
]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("fix", "fix"),
        ("fix-", "fix-login"),
        ("bbbb22222222", "bbbb22222222"),
        ("cccc33333333", "bbbb22222222"),
        ("dddd44444444", "dead-code"),
        ("dddd4", "dead-code"),
        ("dead", "dead-code"),
        ("d", "dead-code"),
        ("aaaa", "fix"),
        ("o", "other"),
    ],
)
def test_an_agent_is_found_by_name_id_or_a_unique_prefix(query: str, name: str) -> None:
    assert [found for found, _ in naming.match(query, AGENTS)] == [name]


@pytest.mark.parametrize("query", ["", "aaa", "nothing", "fix-login-2", "FIX"])
def test_what_means_no_agent_is_unknown(query: str) -> None:
    assert naming.match(query, AGENTS) == ()


@pytest.mark.parametrize("name", ["bbbb22222222", "0123456789ab"])
def test_no_agent_is_given_the_name_that_is_shaped_as_an_id(name: str) -> None:
    with pytest.raises(BadName, match="for an id"):
        naming.check_new_name(name)
    assert naming.check_new_name(name[1:]) == name[1:]


def test_a_beginning_of_a_name_and_of_another_id_is_ambiguous() -> None:
    found = naming.match("cafe1", [("cafe1-menu", "aaaa11111111"), ("x", "cafe12345678")])
    assert len(found) == 2


def test_an_ambiguous_prefix_gives_all_that_it_can_mean() -> None:
    assert {name for name, _ in naming.match("f", AGENTS)} == {"fix", "fix-login"}
    assert {name for name, _ in naming.match("dddd", AGENTS)} == {"dead-code", "other"}


def test_the_same_name_in_two_repositories_is_ambiguous() -> None:
    twins = [("fix", "aaaa11111111"), ("fix", "bbbb22222222")]
    assert naming.match("fix", twins) == tuple(twins)
    assert naming.match("bbbb", twins) == (twins[1],)
