"""Names: from a task to a name, from a name to branch, window and path, and back to an agent.

Everything that ends up in a path, a ref or a tmux target comes from an allow-list. Pure, and
the costly imports (unicodedata, hashlib, difflib) are made where they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from tmuxorch.core.literal import literal
from tmuxorch.errors import BadName

NAME_MAX = 40
FALLBACK_NAME = "worker"

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_WORD = re.compile(r"[a-z0-9]+")
_WORDS_MAX = 4
_WORDS_LENGTH_MAX = 32  # leaves room for the -2, -3… that make a name unique
_TASK_HEAD = 400  # characters that are looked at
_FILLERS = frozenset(
    _WORD.findall(
        "a an and are as at be by can could do for from have hey hi how https http i in into is it "
        "its just let lets like me my need needs now of on or our please should so some that the "
        "their them then there these they this those to us want was we what when which will with "
        "would www you your"
    )
)

_ID = re.compile(r"[0-9a-f]{12}")
_ID_PREFIX_MIN = 4

Candidate = tuple[str, str]
"""An agent's name and id."""


def name_from_task(task: str, taken: Collection[str]) -> str:
    """A short readable name made of the task's first telling words, not among `taken`."""
    text = _ascii_lower(task.strip()[:_TASK_HEAD]).replace("'", "")
    words = _WORD.findall(text)
    telling = [word for word in words if word not in _FILLERS] or words or [FALLBACK_NAME]
    name = telling[0][:_WORDS_LENGTH_MAX]
    for word in telling[1:_WORDS_MAX]:
        if len(name) + 1 + len(word) > _WORDS_LENGTH_MAX:
            break
        name += f"-{word}"
    return unique_name(name, taken)


def unique_name(name: str, taken: Collection[str]) -> str:
    """The name, or the first of name-2, name-3… that is not among `taken`."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        suffix = f"-{count}"
        candidate = name[: NAME_MAX - len(suffix)] + suffix
    return candidate


def check_name(name: str) -> str:
    """The name itself, if it may be one."""
    if _NAME.fullmatch(name):
        return name
    raise BadName(
        f'"{literal(name[:60])}" cannot be a name: use up to {NAME_MAX} of a-z, 0-9 and -, '
        f'beginning with a letter or digit, such as "{name_from_task(name, ())}"'
    )


def check_new_name(name: str) -> str:
    """The name itself, if an agent may be given it: one that is shaped as an id could be taken
    for another's."""
    if _ID.fullmatch(check_name(name)):
        raise BadName(f'"{name}" cannot be a name: it could be taken for an id; choose another')
    return name


def default_branch(name: str, prefix: str) -> str:
    return prefix + check_name(name)


def window_name(name: str) -> str:
    return check_name(name)


def session_name(repo_root: str) -> str:
    """The tmux session of a repository's agents; tmux forbids `.` and `:` in it."""
    return f"tmuxorch-{_repo_label(repo_root)}"


def worktree_path(root: str, repo_root: str, name: str, agent_id: str) -> str:
    """Where an agent's worktree goes; part of its id keeps a reused name from a reused path."""
    return f"{root.rstrip('/')}/{_repo_label(repo_root)}/{check_name(name)}-{agent_id[:4]}"


def _repo_label(repo_root: str) -> str:
    """A readable slug, and a digest of the whole path that tells two of the same name apart."""
    import hashlib

    root = repo_root.rstrip("/")
    words = _WORD.findall(_ascii_lower(root.rpartition("/")[2]))
    slug = "-".join(words)[:24].strip("-") or "repo"
    return f"{slug}-{hashlib.sha256(root.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"


def _ascii_lower(text: str) -> str:
    if not text.isascii():
        import unicodedata

        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return text.lower()


def match(
    query: str, candidates: Sequence[Candidate], *, whole_names: bool = False
) -> tuple[Candidate, ...]:
    """All candidates the query can mean; exactly one means it is found.

    The first of these that anything satisfies decides: its name, its id, the beginning of
    either; of names only whole ones, where `whole_names` count.
    """
    if not query:
        return ()
    found = tuple(c for c in candidates if c[0] == query) or tuple(
        c for c in candidates if c[1] == query
    )
    is_long = len(query) >= _ID_PREFIX_MIN
    return found or tuple(
        c
        for c in candidates
        if (c[0].startswith(query) and not whole_names) or (is_long and c[1].startswith(query))
    )
