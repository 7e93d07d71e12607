"""Looking for all that goes with a worktree: its files byte for byte, its commits, its logs.

Nothing is touched, and nothing is run that a file of the worktree names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tmuxorch.adapters.git import facade as git
from tmuxorch.adapters.git.admin import canonical, list_admins
from tmuxorch.adapters.git.checkout import Checkout, head_of, is_usable, leads_to
from tmuxorch.adapters.git.index_file import Index
from tmuxorch.adapters.git.inner import Inner, observe_inner
from tmuxorch.adapters.git.location import Repo
from tmuxorch.adapters.git.settings import has_settings
from tmuxorch.adapters.git.status import IGNORED, UNTRACKED, TreeStatus, observe_status
from tmuxorch.adapters.git.survey import Survey, is_same, survey
from tmuxorch.adapters.git.threatened import observe_named, observe_threatened
from tmuxorch.adapters.git.worktrees import find_admin_dir
from tmuxorch.adapters.system import processes
from tmuxorch.adapters.system.run import alongside
from tmuxorch.core.literal import pasteable
from tmuxorch.core.observation import Unknown
from tmuxorch.core.stake import Commit, Stake, StakeFact
from tmuxorch.errors import CannotSave, NoRepository, TmuxorchError
from tmuxorch.service import places
from tmuxorch.service.removal.nested import UNREAD, is_below, is_dull, observe_nested

if TYPE_CHECKING:
    from tmuxorch.adapters.system.processes import Member
    from tmuxorch.model import Agent

MARK = "tmuxorch:"
# What git leaves in a worktree's own directory while it waits for the person.
OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply/applying": "am",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "sequencer": "cherry-pick or revert",
    "BISECT_LOG": "bisect",
}


@dataclass(frozen=True, slots=True)
class Work:
    """A worktree's work: what is at stake, and where every part of it is.

    `own` is git's directory for it, None if there is none that git can use. `head` is the
    commit that the files were compared with, `on` the branch that HEAD is on, `tip` where the
    worker's branch is, `dropped` commits that only a log or a half-done operation names.
    `found` is None where the directory is not there. `copied` are files that are as in the
    main worktree, `inner` linked worktrees inside. `settled` says that a fresh worktree would
    lack settings or marks in the index that this one has: nothing to ask anybody about, but to
    be kept.
    """

    stake: Stake
    own: str | None
    head: str | None
    on: str | None
    tip: str | None
    dropped: tuple[str, ...] = ()
    found: Survey | None = None
    copied: tuple[str, ...] = ()
    inner: tuple[Inner, ...] = ()
    settled: bool = False


def observe_stake(agent: Agent) -> StakeFact:
    """What removing the agent would lose; Unknown, with the reason, if that cannot be told."""
    try:
        repo = git.find_repo(agent.task.repo)
    except NoRepository:
        return Unknown(f"its repository {agent.task.repo} is not there")
    try:
        strangers = tuple(str(member) for member in _strangers(agent))
        return replace(observe_work(repo, agent).stake, processes=strangers)
    except (TmuxorchError, OSError) as failure:
        return Unknown(str(failure))


def _strangers(agent: Agent) -> tuple[Member, ...]:
    """Who works in the worktree and is not the agent's."""
    users = processes.observe_users_of(agent.task.worktree)
    if not users:
        return ()
    family = processes.find_family(
        agent_id=agent.task.id,
        roots=tuple(p for p in (agent.run.shim, agent.run.process) if p is not None),
        worktree=agent.task.worktree,
        since_ticks=processes.orphans_since(agent.run.shim) if agent.run.exit is None else None,
    )
    own = {member.process for member in family}
    inside = any(
        processes.is_ancestor_of_us(p.pid) for p in (agent.run.shim, agent.run.process) if p
    )
    if inside:  # the family as this command sees it leaves out what the command hangs from
        users = tuple(u for u in users if not processes.is_ancestor_of_us(u.process.pid))
    return tuple(user for user in users if user.process not in own)


def observe_work(repo: Repo, agent: Agent, *, top: str | None = None) -> Work:
    """Look at everything that goes with the worktree, and at its branch if that is ours.

    `top` is where its directory is now, if it was moved. Raises TmuxorchError where something
    cannot be told: what git says of it, or whether a missing directory has really gone.
    """
    task = agent.task
    worktree, branch, base_commit = task.worktree, task.branch, task.base_commit
    ours = branch if task.branch_made else None
    tip = git.branch_commit(repo, branch)
    registered = find_admin_dir(repo, worktree, recorded=agent.admin)
    own = registered if registered is not None and is_usable(registered) else None
    head, on = head_of(own) if own else (tip or _known(repo, base_commit), None)
    inner = observe_inner(repo, worktree)
    dropped = _dropped(repo, own, ours, [head, tip, base_commit], inner)
    stake: dict[str, object] = {
        "branch": branch,
        "commits": _commits(repo, head, on, ours, base_commit),
        "dropped": tuple(_titled(repo, dropped)),
        "stashes": tuple(_stashes(repo, branch)),
        "operation": _operation(own) if own else None,
    }
    place = top or worktree
    if not os.path.isdir(place) or os.path.islink(place):
        if registered is None and (elsewhere := _moved_to(repo, agent)):
            raise CannotSave(
                f"it was moved to {elsewhere}; move it back with "
                f"`{pasteable(['git', '-C', repo.root, 'worktree', 'move', '-f', '-f'])} "
                f"{pasteable([elsewhere, worktree])}`"
            )
        if registered is not None:
            places.check_gone(place)
            stake["nested"] = tuple(UNREAD(one.path) for one in inner)
            stake["odd"] = (f"{worktree} is not there; if it was moved, move it back first",)
        seen = Stake(**stake)  # type: ignore[arg-type]
        return Work(seen, own, head, on, tip, dropped, inner=inner)
    found, files, same = _files(repo, place, own, head, task.copied, inner)
    odd = []
    if own is not None and not leads_to(place, own) and os.path.lexists(f"{place}/.git"):
        odd.append(f"its .git does not lead to {own}, where tmuxorch made it")
    whole = Stake(**stake, **files, odd=tuple(odd))  # type: ignore[arg-type]
    settled = own is not None and has_settings(repo, own, found.index)
    return Work(whole, own, head, on, tip, dropped, found, same, inner, settled)


def _moved_to(repo: Repo, agent: Agent) -> str | None:
    """Where git says that the worktree is now, by its directory for it or by our mark."""
    for admin in list_admins(repo):
        mark = admin.locked or ""
        is_ours = mark.startswith(MARK) and mark.endswith(f":{agent.task.id}")
        is_its_own = admin.directory == agent.admin and not mark.startswith(MARK)
        if (is_ours or is_its_own) and admin.path and os.path.lexists(admin.path):
            return admin.path if canonical(agent.task.worktree) != canonical(admin.path) else None
    return None


# -- files ------------------------------------------------------------------------------


def _files(
    repo: Repo,
    top: str,
    own: str | None,
    head: str | None,
    copied: Collection[str],
    inner: Collection[Inner],
) -> tuple[Survey, dict[str, object], tuple[str, ...]]:
    """The raw look, and the same in git's categories; whatever git overlooks is added."""
    checkout = Checkout(top, own or repo.common_dir)
    indexed = own is not None and os.path.exists(f"{own}/index")
    status = TreeStatus(head, None, ())
    if indexed:
        answers: list[TreeStatus] = []
        with alongside(lambda: answers.append(observe_status(checkout, ignored=True))):
            found = survey(checkout, head)
        (status,) = answers
    else:
        found = survey(checkout, head, index=Index())
    same = tuple(p for p in copied if _is_same(f"{repo.root}/{p}", f"{top}/{p}"))
    staged = [e.path for e in status.entries if e.staged]
    unstaged = [e.path for e in status.entries if e.unstaged and e.path not in found.untouched]
    seen = {*staged, *unstaged, *found.untouched}
    ignored = {e.path for e in status.entries if e.xy == IGNORED}
    untracked = {e.path for e in status.entries if e.xy == UNTRACKED and e.path[-1] != "/"}
    nested = observe_nested(top, own, found, ignored, inner)
    inside = tuple(f"{repository.path}/" for repository in nested)
    new = [
        path
        for path, facts in found.kept.items()
        if path not in found.changed
        and path not in found.index.entries  # as git itself wrote it, with other line ends
        and path not in seen
        and not is_dull(facts, found, path)
        and not path.startswith(inside)
        and not is_below(path, ignored)
    ]
    untracked.update(new)
    files: dict[str, object] = {
        "staged": tuple(dict.fromkeys((*staged, *sorted(found.moved)))),
        "unstaged": tuple(unstaged),
        "untracked": tuple(sorted(untracked - {*same})),
        "ignored": tuple(_without(sorted(ignored), found, same)),
        "hidden": tuple(sorted({*found.changed - seen, *_hidden_deletions(found, own)})),
        "nested": tuple(n for n in nested if not is_below(n.path, ignored)),
        "special": found.special,
    }
    return found, files, same


def _hidden_deletions(found: Survey, own: str | None) -> Iterator[str]:
    """Files that are gone although git was told not to look; a sparse checkout leaves some out."""
    if own is None or os.path.exists(f"{own}/info/sparse-checkout"):
        return
    for path in found.gone:
        entry = found.index.entries.get(path)
        if entry is not None and entry.skipped:
            yield path


def _without(ignored: Iterable[str], found: Survey, same: Collection[str]) -> Iterator[str]:
    """`ignored` less the files in `same`; a directory with some of them is listed by file."""
    for path in ignored:
        if path.endswith("/") and any(copy.startswith(path) for copy in same):
            yield from sorted(p for p in found.kept if p.startswith(path) and p not in same)
        elif path not in same:
            yield path


def _is_same(one: str, other: str) -> bool:
    """Whether both are the same link, or files of the same bytes and mode."""
    try:
        first, second = os.lstat(one), os.lstat(other)
        if stat.S_ISLNK(first.st_mode) and stat.S_ISLNK(second.st_mode):
            return os.readlink(one) == os.readlink(other)
    except OSError:
        return False
    alike = (first.st_mode, first.st_size) == (second.st_mode, second.st_size)
    return alike and stat.S_ISREG(first.st_mode) and is_same(one, other)


# -- commits ------------------------------------------------------------------------------


def _known(repo: Repo, commit: str) -> str | None:
    done = git.git(repo.root, "cat-file", "-e", f"{commit}^{{commit}}", ok=(0, 1, 128))
    return commit if done.returncode == 0 else None


def _commits(
    repo: Repo, head: str | None, on: str | None, ours: str | None, base_commit: str
) -> tuple[Commit, ...]:
    """The commits since the base that go if HEAD (`on` a branch, or detached) and `ours` go."""
    tips = {head}
    if ours and on != ours:
        tips.add(git.branch_commit(repo, ours))
    real = [tip for tip in tips if tip and tip.strip("0") and tip != base_commit]
    if not real:
        return ()
    return git.commits_only_on(repo, [*real, *_but(repo, base_commit)], besides=ours)


def _but(repo: Repo, base_commit: str) -> list[str]:
    return [f"^{base_commit}"] if _known(repo, base_commit) else []


def _dropped(
    repo: Repo,
    own: str | None,
    ours: str | None,
    known: Iterable[str | None],
    inner: Iterable[Inner],
) -> tuple[str, ...]:
    """What a reset, an amend or a rebase left to the logs, which go with the worktree.

    Of worktrees inside, a detached HEAD goes as well.
    """
    named = observe_named(own, ours) if own is not None else set()
    for one in inner:
        if one.usable:
            named |= observe_named(one.own, None) | ({one.head} if one.head else set())
    if not named:
        return ()
    there = [oid for oid in dict.fromkeys(known) if oid and oid.strip("0") and _known(repo, oid)]
    keepers = git.lasting_refs(besides=ours)
    return tuple(observe_threatened(repo.root, named, there, keepers))


def _titled(repo: Repo, commits: Collection[str]) -> Iterator[Commit]:
    if not commits:
        return
    asked = ("rev-list", "--no-walk", "--encoding=UTF-8", "--format=%s", "--stdin")
    given = "".join(f"{oid}\n" for oid in commits).encode()
    lines = git.git(repo.root, *asked, stdin=given).stdout.decode(errors="replace").split("\n")
    for oid, title in zip(lines[::2], lines[1::2], strict=False):
        yield Commit(oid.removeprefix("commit "), title)


def _operation(own: str) -> str | None:
    found = (word for name, word in OPERATIONS.items() if os.path.exists(f"{own}/{name}"))
    return next(found, None)


def _stashes(repo: Repo, branch: str) -> Iterator[str]:
    """The titles of the stashes that were made on `branch`."""
    asked = ("log", "--no-show-signature", "--walk-reflogs", "--format=%gs", "refs/stash", "--")
    said = git.git(repo.root, *asked, ok=(0, 128)).stdout.decode(errors="replace")
    names = [branch]
    last = branch.rpartition("/")[2]
    if git.branch_commit(repo, last) is None:
        names.append(last)  # git before 2.35 says no more of a branch
    ours = tuple(word for name in names for word in (f"WIP on {name}: ", f"On {name}: "))
    yield from (title for title in said.splitlines() if title.startswith(ours))
