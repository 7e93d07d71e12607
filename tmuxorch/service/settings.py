"""The settings in force for each repository: one look-up for every command, screen and watcher.

`tmuxorch config` in a repository shows them. Files are read again when they have changed.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tmuxorch import config as configuration
from tmuxorch.config import DeadPolicy
from tmuxorch.errors import ConfigInvalid, NotTrusted
from tmuxorch.model import EventKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tmuxorch.adapters.store.records import Store
    from tmuxorch.config import Config, RepoFile

    Stamp = tuple[int, int, int] | None

# A file that is not trusted may be, without having changed.
TRUST_AGAIN_S = 5.0


class Settings:
    """The person's settings, and with them what each repository's own file says.

    Three questions, by what is to be done: `of` for what the file itself may decide, `for_ending`
    for what a person must be able to do whatever it says, `for_watching` for what is done unasked.
    The person's file that cannot be used raises ConfigInvalid, unless it was good before: then
    what it said stays in force. Not for use by several threads.
    """

    def __init__(self, config_path: str, store: Store, tell: Callable[[str], None]) -> None:
        self._path = config_path
        self._store = store
        self._tell = tell
        self._own: Config | None = None
        self._stamp: Stamp = None
        self._good = 0  # counts the person's files that were used
        self._of: dict[str, tuple[tuple[int, Stamp], Config]] = {}
        self._careful: dict[str, tuple[tuple[int, Stamp], Config, float]] = {}
        self._told: dict[str, str] = {}

    def own(self) -> Config:
        """The person's own settings, without any repository's."""
        stamp = _stamp(self._path)
        if self._own is None or stamp != self._stamp:
            self._stamp = stamp
            try:
                self._own = configuration.load(self._path, None)
            except ConfigInvalid as e:
                if self._own is None:
                    raise
                self._note(f"{e.message}; the settings stay as they were")
            else:
                self._good += 1
        return self._own

    def of(self, repo: str) -> Config:
        """For making, starting and bringing back: what the file says runs, so `NotTrusted` or
        `ConfigInvalid` if it is not to be used."""
        own = self.own()
        return self._read(repo, own, _stamp(os.path.join(repo, configuration.REPO_FILE)))

    def for_ending(self, repo: str) -> Config:
        """For ending and removing: a file that cannot be used is told of, and the person's own
        settings count."""
        own = self.own()
        try:
            return self.of(repo)
        except (ConfigInvalid, NotTrusted) as e:
            self._tell_once(repo, f"{e.message}; your own settings are used instead", self._tell)
            return own

    def for_watching(self, repo: str) -> Config:
        """For the watcher: where a file cannot be used, nothing of its repository is removed."""
        own = self.own()
        stamp = _stamp(os.path.join(repo, configuration.REPO_FILE))
        key = self._good, stamp
        known, careful, until = self._careful.get(repo, (None, own, 0.0))
        if known == key and time.monotonic() < until:
            return careful
        try:
            config = self._read(repo, own, stamp)
        except (ConfigInvalid, NotTrusted) as e:
            line = f"{e.message}; until then nothing of {repo} is removed by itself"
            self._tell_once(repo, line, self._note)
            careful = replace(own, cleanup=replace(own.cleanup, dead=DeadPolicy.NEVER))
            self._careful[repo] = key, careful, time.monotonic() + TRUST_AGAIN_S
            return careful
        self._told.pop(repo, None)
        return config

    def _read(self, repo: str, own: Config, stamp: Stamp) -> Config:
        if stamp is None:
            return own
        key = self._good, stamp
        known, config = self._of.get(repo, (None, own))
        if known != key:
            config = configuration.load(self._path, repo, trusted=self._is_trusted)
            self._of[repo] = key, config
        return config

    def _tell_once(self, repo: str, line: str, tell: Callable[[str], None]) -> None:
        if self._told.get(repo) != line:
            self._told[repo] = line
            tell(line)

    def _note(self, line: str) -> None:
        """For what is done unasked: nobody may be reading along."""
        self._store.note(EventKind.SETTING_UNUSABLE, line)
        self._tell(line)

    # -- what a person trusts ----------------------------------------------------

    def _is_trusted(self, digest: str) -> bool:
        return self._store.meta(f"trusted:{digest}") is not None

    def trust(self, file: RepoFile) -> None:
        """Let the file act as long as it says this."""
        self._store.set_meta(f"trusted-text:{file.place}", file.text)
        self._store.set_meta(f"trusted:{file.digest}", "yes")

    def trusted_text(self, file: RepoFile) -> str | None:
        """What the file said when it was trusted last."""
        return self._store.meta(f"trusted-text:{file.place}")


def _stamp(path: str) -> Stamp:
    """What changes when the file does; None if there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
