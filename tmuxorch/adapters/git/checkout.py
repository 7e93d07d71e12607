"""A checkout by the git directory that we know of, whatever its `.git` says.

An agent may write in its worktree what it likes: a `.git` that leads elsewhere, attributes,
repositories inside with settings of their own. What is asked here runs none of the programs
that such files name, and fetches nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tmuxorch.adapters.git.call import LOOK_S, git
from tmuxorch.adapters.git.location import git_dir, read_line
from tmuxorch.adapters.git.pipes import holds_pipes, unblocking
from tmuxorch.adapters.system.run import Completed

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
# Of a foreign repository: no settings of its own say where else to read.
NO_FILES = ("-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null")
FOREIGN_S = 10.0
# What the index has otherwise than a commit. Without the last word git would first read
# `.gitmodules`, which may tell it to overlook submodules, or make it fail.
STAGED = (
    *("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev"),
    "--ignore-submodules=none",
)
SETTINGS = r"^(filter\..*|core\.(autocrlf|eol|attributesfile))$"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """What the commit and the index have at a path: mode and object of each."""

    path: str
    was: tuple[str, str]
    now: tuple[str, str]


def list_staged(answer: bytes) -> Iterator[StagedFile]:
    """What git says where it is asked as by STAGED."""
    records = iter(os.fsdecode(answer).split("\0"))
    # A path may begin with the `:` that each line about one begins with.
    for about, path in zip(records, records, strict=False):
        mode_was, mode, oid_was, oid, _ = about[1:].split(" ")
        yield StagedFile(path, (mode_was, oid_was), (mode, oid))


@dataclass(frozen=True)
class Checkout:
    """Files at `top` and the git directory `own` that belongs to them; `top` may be missing.

    One is `foreign` if its git directory is an agent's as well: its settings may lead to what
    never ends, so that no answer is waited for long.
    """

    top: str
    own: str
    foreign: bool = False

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
        options = (*where, *PLAIN, *(NO_FILES if self.foreign else ()), *arguments)
        given = {**self.unfiltered, **(env or {})}
        with unblocking(self.top):
            limit_s = FOREIGN_S if self.foreign else timeout_s
            return git(directory, *options, ok=ok, stdin=stdin, env=given, timeout_s=limit_s)

    @cached_property
    def unfiltered(self) -> dict[str, str]:
        """An environment that switches off every filter that is configured."""
        names = (key[7:].rpartition(".")[0] for key in self._settings if key.startswith("filter."))
        return settings_env(_unfilter(dict.fromkeys(names)))

    @cached_property
    def _settings(self) -> dict[str, str]:
        asked = (f"--git-dir={self.own}", "config", "-z", "--get-regexp", SETTINGS)
        with unblocking(self.top):
            limit_s = FOREIGN_S if self.foreign else LOOK_S
            answer = os.fsdecode(git(self.own, *asked, ok=(0, 1), timeout_s=limit_s).stdout)
        return dict(pair.partition("\n")[::2] for pair in answer.split("\0") if pair)

    @property
    def may_never_answer(self) -> bool:
        """Whether git would have to wait: for a FIFO of its own, or for a file it is led to."""
        return holds_pipes(self.own) or any(
            _includes(f"{directory}/{name}")
            for directory in {self.own, common_dir(self.own)}
            for name in ("config", "config.worktree")
        )

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


def _includes(config: str) -> bool:
    """Whether a file of settings leads to others; asked where git finds no repository."""
    asked = ("config", "-z", "-f", config, "--no-includes", "--get-regexp", r"^include(if)?\.")
    return (
        os.path.lexists(config) and git("/", *asked, ok=(0, 1), timeout_s=FOREIGN_S).stdout != b""
    )


def common_dir(own: str) -> str:
    try:
        return os.path.realpath(os.path.join(own, read_line(f"{own}/commondir")))
    except OSError:
        return os.path.realpath(own)


def checkout_at(worktree: str) -> Checkout:
    """The checkout of a worktree that is the person's own, so that its `.git` is believed."""
    return Checkout(worktree, git_dir(worktree))


def _unfilter(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Settings by which files are stored and written as they are, without these filters."""
    for name in names:
        for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")):
            yield f"filter.{name}.{key}" if name else f"filter.{key}", value


def settings_env(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Settings for one call of git, after those that the person's environment has.

    By the environment: `-c` cannot name a section that has an equals sign.
    """
    said = os.environ.get("GIT_CONFIG_COUNT", "")
    number = int(said) if said.isdigit() else 0
    env = {}
    for key, value in settings:
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = key, value
        number += 1
    return {**env, "GIT_CONFIG_COUNT": str(number)} if env else {}


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
    """Whether git can work with this git directory; GitFailed if git did not come to say so."""
    # Only its own word counts: of a git that was killed nothing is known.
    done = git(own, f"--git-dir={own}", "rev-parse", "--git-dir", ok=(0, 128))
    return done.returncode == 0


def head_of(own: str) -> tuple[str | None, str | None]:
    """The commit HEAD is at (None before the first) and the branch it is on (None: detached)."""
    where = f"--git-dir={own}"
    on = git(own, where, "symbolic-ref", "-q", "HEAD", ok=(0, 1)).stdout
    at = git(own, where, "rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1)).stdout
    branch = os.fsdecode(on).strip().removeprefix("refs/heads/")
    return at.decode().strip() or None, branch or None
