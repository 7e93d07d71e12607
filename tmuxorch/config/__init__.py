"""Built-in defaults ← the user's TOML ← the repository's, as one frozen Config.

Every problem is named with its file and key, all of them at once. A repository's file that runs
commands or copies files has no effect until the person trusts exactly that content.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from tmuxorch.config.profiles import Profile, TaskBy, build_command, build_custom_command
from tmuxorch.config.rules import FileCheck, Key, dotted, quote
from tmuxorch.errors import ConfigInvalid, NotTrusted
from tmuxorch.model import DeadPolicy, Kind
from tmuxorch.reading import read_regular

__all__ = [
    "REPO_FILE",
    "Cleanup",
    "Config",
    "DeadPolicy",
    "Defaults",
    "History",
    "Origin",
    "Profile",
    "Restart",
    "Salvage",
    "Setup",
    "TaskBy",
    "TmuxSettings",
    "as_json",
    "build_command",
    "build_custom_command",
    "dump",
    "load",
    "needs_trust",
    "template",
    "trust_digest",
]

REPO_FILE = ".tmuxorch.toml"

_DEFAULTS_FILE = os.path.join(os.path.dirname(__file__), "defaults.toml")
_FILE_MAX_BYTES = 1_000_000


class Origin(StrEnum):
    """Where a value comes from; later ones win."""

    BUILT_IN = "built-in"
    USER = "user file"
    REPO = "repo file"


@dataclass(frozen=True, slots=True)
class Defaults:
    agent: str
    branch_prefix: str
    base: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Setup:
    copy: tuple[str, ...]
    run: tuple[str, ...]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Cleanup:
    dead: DeadPolicy
    never_started_s: float
    grace_s: float


@dataclass(frozen=True, slots=True)
class Restart:
    limit: int
    window_s: float
    first_delay_s: float
    max_delay_s: float
    healthy_s: float


@dataclass(frozen=True, slots=True)
class Salvage:
    ignored_cap_mb: int

    @property
    def cap_bytes(self) -> int:
        """How much of ignored files one save may hold."""
        return self.ignored_cap_mb * 1_000_000


@dataclass(frozen=True, slots=True)
class History:
    keep_days: int


@dataclass(frozen=True, slots=True)
class TmuxSettings:
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Config:
    """The effective configuration; `sources` says where each key's value comes from."""

    defaults: Defaults
    setup: Setup
    cleanup: Cleanup
    restart: Restart
    salvage: Salvage
    history: History
    tmux: TmuxSettings
    keys: Mapping[str, str]
    agents: Mapping[str, Profile]
    sources: Mapping[Key, Origin] = field(compare=False, repr=False)


def load(
    config_path: str, repo_root: str | None, *, trusted: Callable[[str], bool] = lambda _: False
) -> Config:
    """The configuration in force; files that do not exist are fine.

    `trusted` is asked with the `trust_digest` of a repository's file that needs it.
    """
    files = {Origin.BUILT_IN: _DEFAULTS_FILE, Origin.USER: config_path}
    if repo_root is not None:
        files[Origin.REPO] = os.path.join(repo_root, REPO_FILE)
    values: dict[Key, Any] = {}
    sources: dict[Key, Origin] = {}
    agents: set[str] = set()
    problems: list[str] = []
    untrusted = False
    for source, path in files.items():
        try:
            content = _read(path)
            data = _parse(path, content)
        except ConfigInvalid as invalid:
            problems.append(invalid.message)
            continue
        check = FileCheck(data, agents, personal=source is not Origin.REPO)
        problems += (f"{_shown(path)}: {problem}" for problem in check.problems)
        values |= check.values
        sources |= dict.fromkeys(check.values, source)
        agents |= check.agents
        if source is Origin.REPO and needs_trust(data):
            untrusted = not trusted(trust_digest(path, content))
    if problems:
        raise ConfigInvalid("\n".join(problems))
    if untrusted:
        raise NotTrusted(
            f"{_shown(files[Origin.REPO])} wants to copy files or run commands: look at it, "
            "then `tmuxorch config --trust`"
        )
    return _build(values, sources)


def _build(values: dict[Key, Any], sources: dict[Key, Origin]) -> Config:
    def table(*above: str) -> dict[str, Any]:
        return {key[-1]: value for key, value in values.items() if key[:-1] == above}

    agents = {}
    for name in dict.fromkeys(key[1] for key in values if key[0] == "agents"):
        fields = table("agents", name)
        if not fields.get("kind"):
            fields["kind"] = values["defaults", "kind"]
            sources["agents", name, "kind"] = sources["defaults", "kind"]
        agents[name] = Profile(name=name, env=table("agents", name, "env"), **fields)
    return Config(
        defaults=Defaults(**table("defaults")),
        setup=Setup(**table("setup")),
        cleanup=Cleanup(**table("cleanup")),
        restart=Restart(**table("restart")),
        salvage=Salvage(**table("salvage")),
        history=History(**table("history")),
        tmux=TmuxSettings(**table("tmux")),
        keys=table("keys"),
        agents=agents,
        sources=sources,
    )


def _read(path: str) -> bytes:
    if path == os.devnull:
        return b""
    try:
        return read_regular(path, limit=_FILE_MAX_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        what = {
            errno.EINVAL: "expected a file; got something else",
            errno.EISDIR: "expected a file; got something else",
            errno.EFBIG: f"expected at most {_FILE_MAX_BYTES} bytes",
        }.get(error.errno or 0, f"cannot be read: {error.strerror}")
        raise ConfigInvalid(f"{_shown(path)}: {what}") from error


def _parse(path: str, content: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigInvalid(f"{_shown(path)}: not UTF-8 text (at line {line})") from error
    except RecursionError as error:
        raise ConfigInvalid(f"{_shown(path)}: nested too deeply") from error
    except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
        raise ConfigInvalid(f"{_shown(path)}: not valid TOML: {error}") from error


def _shown(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + "/") else path


def needs_trust(repo_file_data: Mapping[str, Any]) -> bool:
    """Whether a repository's file decides what is executed (setup, an agent, or which agent), or
    which files that git does not carry are put before an agent (`.env`)."""

    def table(name: str) -> Mapping[str, Any]:
        found = repo_file_data.get(name)
        return found if isinstance(found, dict) else {}

    setup = table("setup")
    return bool(
        setup.get("run")
        or setup.get("copy")
        or any(table("agents").values())
        or "agent" in table("defaults")
    )


def trust_digest(path: str, content: bytes) -> str:
    """What is remembered when a person trusts a file: this content in this repository.

    A link is not followed: the same commands mean something else in another repository.
    """
    return _digest(_place(path) + b"\0" + content)


def _place(path: str) -> bytes:
    directory, name = os.path.split(path)
    return os.fsencode(os.path.join(os.path.realpath(directory), name))


def _digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class RepoFile:
    """A repository's own file as a person is shown it; `place` is one name for where it lies."""

    path: str
    place: str
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "backslashreplace")

    @property
    def digest(self) -> str:
        return trust_digest(self.path, self.content)


def read_repo_file(repo_root: str) -> RepoFile:
    """The repository's own file; one that is not there is empty."""
    path = os.path.join(repo_root, REPO_FILE)
    return RepoFile(path, _digest(_place(path)), _read(path))


def as_json(config: Config) -> dict[str, Any]:
    """The configuration as plain tables, spelled as in a file."""
    tables = asdict(config)
    del tables["sources"]
    for profile in tables["agents"].values():
        del profile["name"]
    return tables


def dump(config: Config) -> str:
    """The configuration as TOML that loads to the same, with each value's source as a comment."""
    tables = as_json(config)
    agents = tables.pop("agents")
    lines: list[str] = []

    def write(key: Key, table: Mapping[str, Any]) -> None:
        lines.append(f"\n[{dotted(key)}]")
        for name, value in table.items():
            source = config.sources.get((*key, name), Origin.BUILT_IN)
            lines.append(f"{dotted((name,))} = {quote(value)}  # {source}")

    for name, table in tables.items():
        write((name,), table)
    for name, profile in agents.items():
        env = profile.pop("env")
        write(("agents", name), profile)
        if env:
            write(("agents", name, "env"), env)
    return "\n".join(lines).lstrip() + "\n"


def template() -> str:
    """The config `tmuxorch init` writes: every setting explained, and commented out."""
    with open(_DEFAULTS_FILE, encoding="utf-8") as file:
        return "".join(line if line[0] in "#[\n" else f"#{line}" for line in file)
