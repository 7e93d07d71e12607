"""What holds of names for every task, repository and text."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tmuxorch.core import literal, naming

# Everything a command line can deliver, halves of surrogate pairs included.
TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
TASK = TEXT | st.lists(
    st.sampled_from(["the", "fix", "Ünïcode", "a-b", "x" * 50, "don't", "修", "\n", "2"])
).map(" ".join)
PATH = TEXT.map(lambda text: "/" + text.replace("\0", ""))
NAME = st.from_regex(r"\A[a-z0-9][a-z0-9-]{0,39}\Z")
ID = st.from_regex(r"\A[0-9a-f]{12}\Z")


@given(TASK)
def test_a_name_is_always_of_the_allow_list(task: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", naming.name_from_task(task, ()))


@given(TASK)
def test_a_name_names_itself(task: str) -> None:
    name = naming.name_from_task(task, ())
    assert naming.name_from_task(name, ()) == name


@given(TASK, st.integers(1, 50))
def test_however_often_a_task_is_given_its_names_differ(task: str, times: int) -> None:
    taken: list[str] = []
    for _ in range(times):
        taken.append(naming.check_name(naming.name_from_task(task, taken)))
    assert len(set(taken)) == times


@given(PATH)
def test_a_session_name_is_always_one_tmux_takes(root: str) -> None:
    assert re.fullmatch(r"tmuxorch-[a-z0-9-]{1,24}-[0-9a-f]{6}", naming.session_name(root))


@given(PATH, NAME, ID)
def test_a_worktree_is_always_two_levels_below_the_root(
    repo: str, name: str, agent_id: str
) -> None:
    path = naming.worktree_path("/trees", repo, name, agent_id)
    assert re.fullmatch(r"/trees/[a-z0-9-]+/[a-z0-9-]+", path)


@given(TEXT)
def test_stripped_text_holds_nothing_to_find_and_the_rest_is_kept(text: str) -> None:
    stripped = literal.strip_controls(text)
    assert literal.find_control(stripped) is None
    assert literal.strip_controls(stripped) == stripped
    found = literal.find_control(text)
    assert (found is None) == (stripped == text)
    if found is not None:
        assert stripped.startswith(text[: found[0]])


@given(st.lists(st.tuples(NAME, ID), unique_by=(lambda c: c[0], lambda c: c[1])), st.data())
def test_a_full_name_always_means_its_own_agent(
    candidates: list[tuple[str, str]], data: st.DataObject
) -> None:
    if candidates:
        chosen = data.draw(st.sampled_from(candidates))
        assert naming.match(chosen[0], candidates) == (chosen,)


@given(st.lists(st.tuples(NAME, ID)), NAME | ID | st.text("abf01-", max_size=6))
def test_whatever_is_matched_begins_with_the_query(
    candidates: list[tuple[str, str]], query: str
) -> None:
    for name, agent_id in naming.match(query, candidates):
        assert name.startswith(query) or agent_id.startswith(query)
