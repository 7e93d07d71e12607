"""A worktree's work into a directory that outlives it.

What was committed stays in the repository, under `refs/tmuxorch/salvage/<agent>/` where no
branch holds it. What was not is nowhere but in the save (see `adapters/saves`), out of reach of
every push and of git's garbage collection.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git import packs
from tmuxorch.adapters.git.deletion import delete_directory
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.git.survey import TEMPORARY
from tmuxorch.adapters.store import saves
from tmuxorch.adapters.store.saves import Manifest, copy_tree
from tmuxorch.adapters.system.treewalk import walk
from tmuxorch.core.sizes import human_size
from tmuxorch.errors import CannotSave, GitFailed, GitKilled
from tmuxorch.service.removal.work import Work

REFS = "refs/tmuxorch/salvage"


@dataclass(frozen=True, slots=True)
class Saved:
    ref: str
    place: str
    kept: int = 0


def save(
    repo: Repo,
    agent_id: str,
    worktree: str,
    work: Work,
    place: str,
    *,
    cap_bytes: int,
) -> Saved:
    """Make what is set aside in `place` a whole save, or raise CannotSave or GitKilled.

    `place`/files is the worktree itself, if it is there: its bytes are never copied. Doing it
    again after a crash is no harm.
    """
    ref = f"{REFS}/{agent_id}/root"
    try:
        _check_cap(work, cap_bytes)
        kept = [*_kept(work), *_unsealed(f"{place}/files", work)]
        lasting = packs.observe_lasting(repo)
        if work.own is not None:
            _save_git(work.own, work.head, place)
        for number, inner in enumerate(work.inner):
            os.makedirs(f"{place}/inner/{number}", mode=0o700, exist_ok=True)
            _save_git(inner.own, inner.head, f"{place}/inner/{number}")
        heads = (work.head, work.tip, *work.dropped, *(inner.head for inner in work.inner))
        held = [oid for oid in dict.fromkeys(heads) if oid]
        pack = packs.keep_pack(repo, held, lasting) if held else None
        hold(repo, f"{REFS}/{agent_id}", held)
        packs.check_connected(repo, held, lasting)
        found = work.found
        manifest = Manifest(
            head=work.head,
            branch=work.on,
            tip=work.tip,
            whole=found is not None,
            usual=found.usual if found else 0o644,
            kept=tuple(kept),
            gone=found.gone if found else (),
            commits=tuple(held),
            pack=pack,
            admin=work.own,
            top=worktree,
            inner=tuple((i.path, i.own, i.head, i.branch) for i in work.inner),
        )
        saves.write_manifest(place, manifest)
    except GitKilled:
        raise
    except (GitFailed, OSError) as error:
        raise CannotSave(str(error)) from error
    return Saved(ref, place, len(kept))


def saved_in(agent_id: str, place: str) -> Saved:
    """A save that was made before."""
    return Saved(f"{REFS}/{agent_id}/root", place, len(saves.read_manifest(place).kept))


def _kept(work: Work) -> list[tuple[str, int, int]]:
    if work.found is None:
        return []
    return [(p, f.st_mode, f.st_size) for p, f in sorted(work.found.kept.items())]


def _unsealed(files: str, work: Work) -> list[tuple[str, int, int]]:
    """What is in directories that forbid reading; they are ours, so they can be opened."""
    more = []
    pending = sorted(work.found.sealed) if work.found else []
    for path in pending:
        os.chmod(f"{files}/{path}", 0o700)
        for found in walk(f"{files}/{path}"):
            name = f"{path}/{found.path}"
            more.append((name, found.stat.st_mode, found.stat.st_size))
            if found.entries < 0:
                pending.append(name)
    return more


def _check_cap(work: Work, cap_bytes: int) -> None:
    if work.found is None or not work.stake.ignored:
        return
    ignored = tuple(work.stake.ignored)
    folders = tuple(path for path in ignored if path.endswith("/"))
    total = sum(
        facts.st_size
        for path, facts in work.found.kept.items()
        if stat.S_ISREG(facts.st_mode) and (path in ignored or path.startswith(folders))
    )
    if total > cap_bytes:
        raise CannotSave(
            f"there are {human_size(total)} of files that git ignores, over the cap of "
            f"{human_size(cap_bytes)}; delete what can be made again, or raise the cap"
        )


def _save_git(own: str, head: str | None, place: str) -> None:
    target = f"{place}/git"
    if os.path.lexists(target):
        delete_directory(target)
    skip = [name for name in os.listdir(own) if name.startswith(TEMPORARY)]
    copy_tree(own, target, skip=skip, link="objects")
    packs.write_staged(own, head, f"{place}/staged.pack")


def hold(repo: Repo, prefix: str, commits: Sequence[str]) -> None:
    """Refs for the commits, the first as `root`; read back."""
    names = ("root", *(str(number) for number, _ in zip(count(1), commits[1:], strict=False)))
    wanted = {f"{prefix}/{name}": oid for name, oid in zip(names, commits, strict=False)}
    lines = "".join(f"update {ref} {oid}\n" for ref, oid in wanted.items())
    if wanted:
        git.git(repo.root, "update-ref", "--stdin", stdin=lines.encode())
    asked = ("for-each-ref", "--format=%(refname) %(objectname)", f"{prefix}/")
    held = dict(line.split(" ") for line in git.git(repo.root, *asked).stdout.decode().splitlines())
    if not wanted.items() <= held.items():
        raise CannotSave(f"the refs below {prefix} in {repo.root} do not hold what was saved")


def observe_unmerged(repo: Repo, place: str) -> str | None:
    """What a save has that no lasting ref has, in words; None if it has nothing of its own."""
    manifest = saves.read_manifest(place)
    if manifest.gone or any(not stat.S_ISDIR(mode) for _, mode, _ in manifest.kept):
        return "changes that were not committed"
    if os.path.exists(f"{place}/staged.pack"):
        return "changes that were not committed"
    commits = [oid for oid in manifest.commits if oid != manifest.head or manifest.whole]
    if not commits:
        return None
    asked = ("rev-list", "--max-count=1", *commits, "--not", *git.lasting_refs())
    only = git.git(repo.root, *asked, ok=(0, 128))
    return "commits that no branch has" if only.stdout or only.returncode else None


def drop(repo: Repo, agent_id: str, place: str | None) -> None:
    """Delete the refs of a save and let go of its pack; git collects what nobody else needs."""
    refs = git.git(
        repo.root, "for-each-ref", "--format=delete %(refname)", f"{REFS}/{agent_id}/"
    ).stdout
    if refs:
        git.git(repo.root, "update-ref", "--stdin", stdin=refs)
    if place is not None and saves.is_whole(place) and (pack := saves.read_manifest(place).pack):
        packs.drop_pack(repo, pack)
