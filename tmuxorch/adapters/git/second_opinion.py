"""Where GitPython sees branches: somebody else's reading of a repository."""

from __future__ import annotations

from collections.abc import Iterable

from tmuxorch.adapters.git.call import UNASKED, environment
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.system.apart import answer, ask_apart
from tmuxorch.core.observation import Unknown


def ask_gitpython(repo: Repo, branches: Iterable[str]) -> dict[str, str] | Unknown:
    """The commit of each of the branches; one that it does not see is missing."""
    env = {**environment(), **UNASKED}
    return ask_apart(__name__, repo.common_dir, *branches, env=env)


def _look(common_dir: str, *branches: str) -> dict[str, str]:
    import git

    with git.Repo(common_dir) as repo:
        settings = repo.config_reader("repository")
        if settings.get_value("extensions", "refstorage", "files") != "files":
            raise SystemExit("it reads no refs but those in files")
        # Not `is_valid`: to that, what cannot be read is not there.
        return {head.name: head.commit.hexsha for head in repo.heads if head.name in branches}


if __name__ == "__main__":
    answer(_look)
