"""Objects in packs of their own, out of reach of whoever collects garbage meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

from tmuxorch.adapters.git.branches import PASSING_REFS
from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.checkout import STAGED, list_staged
from tmuxorch.adapters.git.location import Repo
from tmuxorch.errors import CannotSave

PACK_S = 3600.0
KEEP = b"tmuxorch: work that was saved before its worktree was removed\n"
OPTIONS = ("pack-objects", "--quiet", "--revs", "--delta-base-offset")


def observe_lasting(repo: Repo, *, besides: Sequence[str] = ()) -> list[str]:
    """The commits that refs hold which stay: no stash, no save, none of `besides`."""
    answer = git(repo.root, "for-each-ref", "--format=%(objectname) %(refname)").stdout
    lasting = set()
    for line in os.fsdecode(answer).splitlines():
        oid, _, ref = line.partition(" ")
        passing = ref.startswith(tuple(p.rstrip("*") for p in PASSING_REFS))
        if not passing and ref not in besides:
            lasting.add(oid)
    return sorted(lasting)


def keep_pack(repo: Repo, commits: Iterable[str], lasting: Iterable[str]) -> str | None:
    """Put what only these commits need into a kept pack; its name, None if there is nothing.

    It is complete: with what `lasting` commits lead to, all that the commits need is there.
    """
    stdin = _revisions(commits, lasting)
    target = os.path.join(repo.common_dir, "objects", "pack", "pack")
    asked = (*OPTIONS, "--non-empty", target)
    name = git(repo.root, *asked, stdin=stdin, timeout_s=PACK_S).stdout.decode().strip()
    if not name:
        return None
    with open(f"{target}-{name}.keep", "wb") as file:
        file.write(KEEP)
    done = git(repo.root, "verify-pack", f"{target}-{name}.idx", ok=range(256), timeout_s=PACK_S)
    if done.returncode != 0:
        raise CannotSave(f"the pack {target}-{name} in {repo.root} cannot be read back")
    return name


def check_connected(repo: Repo, commits: Sequence[str], lasting: Iterable[str]) -> None:
    """Raise CannotSave unless all that the commits need is there."""
    asked = ("rev-list", "--objects", "--quiet", "--stdin")
    stdin = _revisions(commits, lasting)
    done = git(repo.root, *asked, stdin=stdin, ok=range(256), timeout_s=PACK_S)
    if done.returncode != 0:
        raise CannotSave(f"commits of it are not whole any more in {repo.root}")


def drop_pack(repo: Repo, name: str) -> None:
    """Let git have the pack again: what nothing else needs goes at the next collection."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(repo.common_dir, "objects", "pack", f"pack-{name}.keep"))


def write_staged(own: str, head: str | None, target: str) -> bool:
    """Put what the index in `own` names, and the commit `head` lacks, into the file `target`.

    Only there: what was never committed has no place where a push would find it. False if
    there is nothing of that kind. It is read back before this returns.
    """
    where = f"--git-dir={own}"
    names = "".join(f"{oid}\n" for oid in sorted(_staged(own, head))).encode()
    if not names:
        return False
    asked = (where, "cat-file", "--batch-check=%(objectname) %(objecttype)")
    there = git(own, *asked, stdin=names).stdout.decode().splitlines()
    # git knows the empty file without having it.
    blobs = [line.removesuffix(" blob") for line in there if line.endswith(" blob")]
    names = "".join(f"{oid}\n" for oid in blobs).encode()
    packing = (where, "pack-objects", "--quiet", "--stdout")
    data = git(own, *packing, stdin=names, timeout_s=PACK_S).stdout
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    index = f"{target}.idx"
    try:
        git(own, where, "index-pack", "-o", index, target, timeout_s=PACK_S)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(index)
    return True


def _staged(own: str, head: str | None) -> set[str]:
    """The files that the index has otherwise than the commit, conflicts in all versions."""
    where = f"--git-dir={own}"
    if not os.path.exists(f"{own}/index"):
        return set()
    scope = ("-u",) if head else ("-s",)
    listed = os.fsdecode(git(own, where, "ls-files", "-z", *scope).stdout).split("\0")
    facts = [record.partition("\t")[0].split(" ") for record in listed if record]
    oids = {oid for mode, oid, _ in facts if mode != "160000"}
    if head:
        staged = list_staged(git(own, where, *STAGED, head).stdout)
        now = (file.now for file in staged)
        oids.update(oid for mode, oid in now if mode not in ("000000", "160000"))
    return {oid for oid in oids if oid.strip("0")}


def read_staged(repo: Repo, source: str) -> str:
    """Bring the objects of such a file into the repository, kept; returns the pack's name."""
    with open(source, "rb") as file:
        data = file.read()
    asked = ("index-pack", "--stdin", "--keep=tmuxorch")
    said = git(repo.root, *asked, stdin=data, timeout_s=PACK_S).stdout.decode()
    return said.split()[-1]


def _revisions(wanted: Iterable[str], known: Iterable[str]) -> bytes:
    return "".join([*(f"{oid}\n" for oid in wanted), *(f"^{oid}\n" for oid in known)]).encode()
