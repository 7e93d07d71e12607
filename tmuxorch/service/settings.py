"""The settings in force for each repository, the same for all that is done with its agents.

`tmuxorch config` in a repository shows them. Files are read again when they have changed.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

from tmuxorch import config as configuration
from tmuxorch.config import DeadPolicy
from tmuxorch.errors import ConfigInvalid, NotTrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tmuxorch.config import Config

    Stamp = tuple[int, int, int] | None
    Trusted = Callable[[str], bool]

# A file that is not trusted may be, without having changed.
TRUST_AGAIN_S = 5.0


def load_for_person(
    config_path: str, repo: str, *, trusted: Trusted, tell: Callable[[str], None]
) -> Config:
    """For ending and removing, which a person must be able to do whatever a repository's file
    says: one that cannot be used is told of, and the person's own settings count."""
    try:
        return configuration.load(config_path, repo, trusted=trusted)
    except (ConfigInvalid, NotTrusted) as e:
        config = configuration.load(config_path, None)
        tell(f"{e.message}; your own settings are used instead")
        return config


class Settings:
    """What the watcher obeys, for each repository.

    The person's own file that cannot be used changes nothing: the last good one stays in force.
    Where a repository's cannot be used, nothing of that repository is removed by itself.
    Not for use by several threads.
    """

    def __init__(self, config_path: str, *, trusted: Trusted, tell: Callable[[str], None]) -> None:
        self._path = config_path
        self._trusted = trusted
        self._tell = tell
        self._stamp = _stamp(config_path)
        self._own = configuration.load(config_path, None)
        self._good = 0  # counts the person's files that were used
        self._of: dict[str, tuple[tuple[int, Stamp], Config, float]] = {}
        self._told: dict[str, str] = {}

    def own(self) -> Config:
        """The person's own settings, without any repository's."""
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._own = configuration.load(self._path, None)
            except ConfigInvalid as e:
                self._tell(f"{e.message}; the settings stay as they were")
            else:
                self._good += 1
        return self._own

    def of(self, repo: str) -> Config:
        """The settings for that repository's agents."""
        own = self.own()
        stamp = _stamp(os.path.join(repo, configuration.REPO_FILE))
        if stamp is None:
            self._told.pop(repo, None)
            return own
        key = self._good, stamp
        known, config, until = self._of.get(repo, (None, own, 0.0))
        if known != key or time.monotonic() >= until:
            config, until = self._load(repo, own)
            self._of[repo] = key, config, until
        return config

    def _load(self, repo: str, own: Config) -> tuple[Config, float]:
        """The settings, and until when they hold if no file changes."""
        try:
            config = configuration.load(self._path, repo, trusted=self._trusted)
        except (ConfigInvalid, NotTrusted) as e:
            if self._told.get(repo) != e.message:
                self._told[repo] = e.message
                self._tell(f"{e.message}; until then nothing of {repo} is removed by itself")
            careful = replace(own, cleanup=replace(own.cleanup, dead=DeadPolicy.NEVER))
            return careful, time.monotonic() + TRUST_AGAIN_S
        self._told.pop(repo, None)
        return config, float("inf")


def _stamp(path: str) -> Stamp:
    """What changes when the file does; None if there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
