"""A checkout by the git directory that we know of, whatever its `.git` says.

An agent may write in its worktree what it likes: a `.git` that leads elsewhere, attributes,
repositories inside with settings of their own. What is asked here runs none of the programs
that such files name, and fetches nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from tmuxorch.adapters.git.call import LOOK_S, git
from tmuxorch.adapters.gitdir import git_dir, read_line
from tmuxorch.adapters.run import Completed
from tmuxorch.errors import GitFailed, NoRepository

# Settings that let git skip a look at a file, or see another name, mode or link than there is.
PLAIN = (
    *("-c", "core.sparseCheckout=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.trustctime=true"),
    *("-c", "core.checkStat=default"),
    *("-c", "core.ignoreStat=false"),
    *("-c", "core.fileMode=true"),
    *("-c", "core.symlinks=true"),
    *("-c", "core.ignoreCase=false"),
    *("-c", "core.precomposeUnicode=false"),
)
SETTINGS = r"^(filter\..*|core\.(autocrlf|eol|attributesfile))$"


@dataclass(frozen=True)
class Checkout:
    """Files at `top` and the git directory `own` that belongs to them; `top` may be missing."""

    top: str
    own: str

    def ask(
        self,
        *arguments: str,
        ok: Collection[int] = (0,),
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = LOOK_S,
    ) -> Completed:
        """Ask git about these files; no filter of anybody's runs."""
        where = (f"--git-dir={self.own}", f"--work-tree={self.top}")
        directory = self.top if os.path.isdir(self.top) else self.own
        options = (*where, *PLAIN, *self.unfiltered)
        return git(
            directory, *options, *arguments, ok=ok, stdin=stdin, env=env, timeout_s=timeout_s
        )

    @cached_property
    def unfiltered(self) -> tuple[str, ...]:
        """Options that switch off every filter that is configured."""
        return unfilter(self.filters)

    @cached_property
    def filters(self) -> tuple[str, ...]:
        names = (key[7:].rpartition(".")[0] for key in self._settings if key.startswith("filter."))
        return tuple(dict.fromkeys(name for name in names if name and "=" not in name))

    @cached_property
    def _settings(self) -> dict[str, str]:
        asked = (f"--git-dir={self.own}", "config", "-z", "--get-regexp", SETTINGS)
        answer = os.fsdecode(git(self.own, *asked, ok=(0, 1)).stdout)
        return dict(pair.partition("\n")[::2] for pair in answer.split("\0") if pair)

    @property
    def line_ends(self) -> str:
        """What git is set to do with line ends of files that no attributes mention.

        `false`: nothing; `input`: it keeps others than it finds; `true`: it writes others too.
        """
        crlf = self._settings.get("core.autocrlf", "false").lower()
        if self._settings.get("core.eol", "").lower() == "crlf":
            return "true"
        return {"no": "false", "off": "false", "0": "false", "": "true", "input": "input"}.get(
            crlf, "false" if crlf == "false" else "true"
        )

    @property
    def attributes_files(self) -> tuple[str, ...]:
        """Where attributes may stand that are not in the worktree itself."""
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        personal = self._settings.get("core.attributesfile") or f"{home}/git/attributes"
        common = common_dir(self.own)
        return (f"{common}/info/attributes", os.path.expanduser(personal), "/etc/gitattributes")


def common_dir(own: str) -> str:
    try:
        return os.path.realpath(os.path.join(own, read_line(f"{own}/commondir")))
    except OSError:
        return os.path.realpath(own)


def checkout_at(worktree: str) -> Checkout:
    """The checkout of a worktree that is the person's own, so that its `.git` is believed."""
    return Checkout(worktree, git_dir(worktree))


def unfilter(names: Iterable[str]) -> tuple[str, ...]:
    """git options that store and write files as they are, without these filters."""
    settings = ("clean=", "smudge=", "process=", "required=false")
    return tuple(x for name in names for s in settings for x in ("-c", f"filter.{name}.{s}"))


def leads_to(worktree: str, own: str) -> bool:
    """Whether the `.git` in the worktree is the file that git made there for `own`."""
    dot_git = f"{worktree}/.git"
    try:
        if os.path.islink(dot_git) or not os.path.isfile(dot_git):
            return False
        target = read_line(dot_git).removeprefix("gitdir: ")
    except OSError:
        return False
    return os.path.realpath(os.path.join(worktree, target)) == os.path.realpath(own)


def is_usable(own: str) -> bool:
    """Whether git can work with this git directory at all."""
    try:
        git(own, f"--git-dir={own}", "rev-parse", "--git-dir")
    except (GitFailed, NoRepository):
        return False
    return True


def head_of(own: str) -> tuple[str | None, str | None]:
    """The commit HEAD is at (None before the first) and the branch it is on (None: detached)."""
    where = f"--git-dir={own}"
    on = git(own, where, "symbolic-ref", "-q", "HEAD", ok=(0, 1)).stdout
    at = git(own, where, "rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1)).stdout
    branch = os.fsdecode(on).strip().removeprefix("refs/heads/")
    return at.decode().strip() or None, branch or None
