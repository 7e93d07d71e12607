"""git, seen from outside: one function per thing that is asked of it or done with it."""

from tmuxorch.adapters.git.admin import canonical, list_admins
from tmuxorch.adapters.git.branches import (
    Base,
    branch_commit,
    check_branch_name,
    commits_only_on,
    delete_branch,
    holding_nothing,
    holds_nothing,
    lasting_refs,
    resolve_base,
)
from tmuxorch.adapters.git.call import git
from tmuxorch.adapters.git.changes import WorkStats, diff, work_stats
from tmuxorch.adapters.git.copies import as_patterns, copy_into_worktree
from tmuxorch.adapters.git.location import Repo, find_repo, git_dir, locate
from tmuxorch.adapters.git.status import Entry, TreeStatus, observe_status
from tmuxorch.adapters.git.worktrees import (
    Worktree,
    add_worktree,
    discard_worktree,
    forget_worktree,
    is_ours,
    list_worktrees,
)

__all__ = [
    "Base",
    "Entry",
    "Repo",
    "TreeStatus",
    "WorkStats",
    "Worktree",
    "add_worktree",
    "as_patterns",
    "branch_commit",
    "canonical",
    "check_branch_name",
    "commits_only_on",
    "copy_into_worktree",
    "delete_branch",
    "diff",
    "discard_worktree",
    "find_repo",
    "forget_worktree",
    "git",
    "git_dir",
    "holding_nothing",
    "holds_nothing",
    "is_ours",
    "lasting_refs",
    "list_admins",
    "list_worktrees",
    "locate",
    "observe_status",
    "resolve_base",
    "work_stats",
]
