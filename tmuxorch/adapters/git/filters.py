"""Clean and smudge filters of a repository, which may be missing on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from tmuxorch.adapters.git.call import LOOK_S, git
from tmuxorch.adapters.run import Completed
from tmuxorch.errors import GitFailed


def unfilter(names: Iterable[str]) -> tuple[str, ...]:
    """git options that store and write files as they are, without these filters."""
    settings = ("clean=", "smudge=", "process=", "required=false")
    return tuple(x for name in names for s in settings for x in ("-c", f"filter.{name}.{s}"))


def observe_filters(top: str) -> tuple[str, ...]:
    """The names of the filters that are configured."""
    asked = ("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    keys = os.fsdecode(git(top, *asked, ok=(0, 1)).stdout).split("\0")
    names = (key.removeprefix("filter.").rpartition(".")[0] for key in keys)
    return tuple(dict.fromkeys(name for name in names if name and "=" not in name))


def ask_despite_filters(
    top: str, *arguments: str, env: Mapping[str, str] | None = None, timeout_s: float = LOOK_S
) -> Completed:
    """Ask git; where a required filter fails, ask again about the files as they are."""
    try:
        return git(top, *arguments, env=env, timeout_s=timeout_s)
    except GitFailed as failed:
        if "filter" not in failed.stderr:
            raise
        options = unfilter(observe_filters(top))
        return git(top, *options, *arguments, env=env, timeout_s=timeout_s)
