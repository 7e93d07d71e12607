"""Kinds of work that an agent may leave in its worktree, each a few writes and git calls.

What git does not see, sees otherwise or would take for rubbish is here too. A work that does
not fit what is there already (a commit with nothing to commit) changes nothing.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# In a repository's own configuration, as git-lfs, nbstripout and the like leave it there.
FILTER = ("filter.strip.clean", "sed -e s/secret//g")
CONFIGS: dict[str, tuple[str, str]] = {
    "plain": ("core.logAllRefUpdates", "true"),
    "autocrlf": ("core.autocrlf", "true"),
    "autocrlf-input": ("core.autocrlf", "input"),
    "no-filemode": ("core.fileMode", "false"),
    "no-symlinks": ("core.symlinks", "false"),
    "ignorecase": ("core.ignoreCase", "true"),
}
ODD_NAMES = (
    b"line\nbreak",
    b"quo\"te's",
    b"not-utf8-\xff\xfe",
    b"trail ",
    b" lead",
    b"-dash",
    b":colon",
    b"*",
)


@dataclass(frozen=True)
class Bench:
    """One worktree to work in, a git that fails quietly, and dice."""

    top: Path
    environ: Mapping[str, str]
    dice: random.Random

    def git(self, *args: str, at: Path | None = None) -> bool:
        argv = ["git", "-C", str(at or self.top), *args]
        done = subprocess.run(
            argv, env=self.environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return done.returncode == 0

    def text(self) -> bytes:
        """A few lines nobody has written before."""
        return b"".join(b"%016x\n" % self.dice.getrandbits(64) for _ in range(3))

    def name(self) -> str:
        return f"{self.dice.getrandbits(24):06x}"

    def write(self, path: str | bytes, data: bytes | None = None, mode: int | None = None) -> None:
        """Write into the worktree; what is in the way (a directory, a link on it) stays."""
        where = os.path.join(os.fsencode(self.top), os.fsencode(path))
        with suppress(OSError):
            os.makedirs(os.path.dirname(where), exist_ok=True)
            with open(where, "wb") as file:
                file.write(self.text() if data is None else data)
            if mode is not None:
                os.chmod(where, mode)

    def tracked(self) -> str:
        return self.dice.choice(["README", "src/app.py", "run.sh", "src/lib.c"])


Work = Callable[[Bench], None]
WORKS: dict[str, Work] = {}


def work(function: Work) -> Work:
    WORKS[function.__name__.replace("_", "-")] = function
    return function


@work
def edit(b: Bench) -> None:
    b.write(b.tracked())


@work
def delete(b: Bench) -> None:
    with suppress(OSError):
        (b.top / b.tracked()).unlink()


@work
def untracked(b: Bench) -> None:
    b.write(f"new/{b.name()}")


@work
def ignored(b: Bench) -> None:
    b.write(b.dice.choice([f"{b.name()}.log", f"build/{b.name()}", ".env"]))


@work
def staged_only(b: Bench) -> None:
    name = f"staged-{b.name()}"
    b.write(name)
    b.git("add", "-f", name)
    if b.dice.random() < 0.5:
        b.write(name)
    else:
        (b.top / name).unlink(missing_ok=True)


@work
def commit(b: Bench) -> None:
    b.write(f"committed/{b.name()}")
    b.git("add", "committed")
    b.git("commit", "-qm", "a commit")


@work
def reflog_only(b: Bench) -> None:
    """A commit that only the reflog knows."""
    name = f"regretted-{b.name()}"
    b.write(name)
    b.git("add", name)
    if b.git("commit", "-qm", "regretted"):
        b.git("reset", "-q", "--hard", "HEAD~")


@work
def detach(b: Bench) -> None:
    b.git("checkout", "-q", "--detach")
    commit(b)


@work
def stash(b: Bench) -> None:
    edit(b)
    b.git("stash", "-q")


@work
def switch(b: Bench) -> None:
    b.git("checkout", "-q", "-b", f"own-{b.name()}")


@work
def stopped_rebase(b: Bench) -> None:
    b.git("checkout", "-q", "-f", ".")
    side = f"side-{b.name()}"
    b.git("branch", side)
    b.write("README", b"one\n")
    b.git("commit", "-qam", "one")
    b.git("checkout", "-q", side)
    b.write("README", b"two\n")
    b.git("commit", "-qam", "two")
    b.git("rebase", "-q", "-")


@work
def untrack(b: Bench) -> None:
    b.git("rm", "-q", "--cached", "--ignore-unmatch", "src/lib.c")


@work
def assume_unchanged(b: Bench) -> None:
    b.git("update-index", "--assume-unchanged", "src/app.py")
    b.write("src/app.py")


@work
def skip_worktree(b: Bench) -> None:
    b.git("update-index", "--skip-worktree", "README")
    b.write("README")


@work
def intent_to_add(b: Bench) -> None:
    name = f"intended-{b.name()}"
    b.write(name)
    b.git("add", "-N", name)


@work
def nested(b: Bench) -> None:
    """A repository of its own inside, with a commit, a stash and something uncommitted."""
    home = b.top / f"nested-{b.name()}"
    b.git("init", "-q", "--template=", str(home))
    b.write(f"{home.name}/file")
    b.git("add", ".", at=home)
    b.git("commit", "-qm", "inside", at=home)
    b.write(f"{home.name}/file")
    b.git("stash", "-q", at=home)
    b.write(f"{home.name}/file")
    b.write(f"{home.name}/.git/info/exclude", b"*.o\n")
    b.write(f"{home.name}/{b.name()}.o")


@work
def shallow_clone(b: Bench) -> None:
    home = b.top / f"shallow-{b.name()}"
    b.git("clone", "-q", "--template=", "--depth=1", f"file://{_common(b)}", str(home))
    b.write(f"{home.name}/new")
    b.git("add", ".", at=home)
    b.git("commit", "-qm", "on a shallow clone", at=home)


@work
def empty_submodule(b: Bench) -> None:
    """The directory of a submodule that nobody initialised, with a file in it."""
    name = f"sub-{b.name()}"
    b.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{name}")
    b.write(f"{name}/notes")


@work
def false_git(b: Bench) -> None:
    """A `.git` that is no repository, as in fixtures of tests."""
    name = f"fixture-{b.name()}"
    if b.dice.random() < 0.5:
        b.write(f"{name}/.git/config")
        b.write(f"{name}/.git/deep/er")
    else:
        b.write(f"{name}/.git", b"gitdir: nowhere\n")
    b.write(f"{name}/beside")


@work
def line_endings(b: Bench) -> None:
    b.write(".gitattributes", b"*.c text eol=lf\n*.nb filter=strip\n*.id ident\n")
    b.write("src/lib.c", b"int x;\r\nint y;\r\n")


@work
def filtered(b: Bench) -> None:
    """A file whose cleaned form is what git has already."""
    b.write(".gitattributes", b"*.c text eol=lf\n*.nb filter=strip\n*.id ident\n")
    b.write("note.nb", b"text\n")
    b.git("add", ".gitattributes", "note.nb")
    b.git("commit", "-qm", "a note")
    b.write("note.nb", b"text secretsecret\n".replace(b" ", b""))


@work
def ident(b: Bench) -> None:
    b.write(".gitattributes", b"*.c text eol=lf\n*.nb filter=strip\n*.id ident\n")
    b.write("a.id", b"$Id$\n")
    b.git("add", ".gitattributes", "a.id")
    b.git("commit", "-qm", "an ident")
    b.write("a.id", b"$Id: of my own $\n")


@work
def modes(b: Bench) -> None:
    name = b.dice.choice(["README", "run.sh", "src/app.py"])
    with suppress(OSError):
        os.chmod(b.top / name, b.dice.choice([0o600, 0o400, 0o755, 0o644]))
    b.write(f"mode-{b.name()}", mode=b.dice.choice([0o600, 0o400, 0o755]))


@work
def links(b: Bench) -> None:
    target = b.dice.choice(["README", "nowhere", "/etc/hostname", "..", "."])
    with suppress(OSError):
        (b.top / f"link-{b.name()}").symlink_to(target)
    with suppress(OSError):
        (b.top / "link").unlink()
        b.write("link", b"README")


@work
def odd_names(b: Bench) -> None:
    b.write(b.dice.choice(ODD_NAMES))
    b.write(b"odd/" + b.dice.choice(ODD_NAMES) + b"/" + b.dice.choice(ODD_NAMES))


@work
def other_case(b: Bench) -> None:
    b.write("readme")


@work
def empty_things(b: Bench) -> None:
    b.write(f"empty-{b.name()}", b"")
    with suppress(OSError):
        (b.top / f"hollow-{b.name()}" / "inside").mkdir(parents=True)


@work
def deep(b: Bench) -> None:
    b.write("/".join(["d"] * b.dice.choice([40, 400])) + f"/{b.name()}")


@work
def big(b: Bench) -> None:
    b.write(f"big-{b.name()}{b.dice.choice(['', '.log'])}", b.dice.randbytes(300_000))


@work
def replaced(b: Bench) -> None:
    """A directory where a file was, a file where a directory was."""
    with suppress(OSError):
        (b.top / "run.sh").unlink()
    b.write("run.sh/now/a/directory")


def _common(b: Bench) -> str:
    done = subprocess.run(
        ["git", "-C", str(b.top), "rev-parse", "--path-format=absolute", "--git-common-dir"],
        env=b.environ,
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.strip()


def fill_repository(repo: Path, environ: Mapping[str, str]) -> None:
    """Make the repository that the works above know their way about."""
    bench = Bench(repo, environ, random.Random(0))
    repo.mkdir(parents=True, exist_ok=True)
    bench.git("init", "-q")
    bench.git("config", *FILTER)
    bench.write("README", b"hello\n")
    bench.write("src/app.py", b"print('hi')\n")
    bench.write("src/lib.c", b"int x;\nint y;\n")
    bench.write("run.sh", b"#!/bin/sh\n", 0o755)
    (repo / "link").symlink_to("README")
    bench.write(".gitignore", b"*.log\n.env\nbuild/\n")
    bench.git("add", ".")
    assert bench.git("commit", "-qm", "first")
