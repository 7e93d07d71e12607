"""What each key of a config file may hold: one rule per key, and the check of a whole file.

A rule takes the value TOML gave and returns the one to use, or raises WrongValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any

from tmuxorch.config.profiles import AnswerBy, TaskBy
from tmuxorch.model import DeadPolicy, Kind

Key = tuple[str, ...]
Rule = Callable[[Any], Any]

_YEAR_S = 31_536_000
_SHOWN_MAX = 60


class WrongValueError(Exception):
    """A value is not what its rule expects; the message says what that is."""


def _text(value: Any) -> str:
    if isinstance(value, str) and "\0" not in value:
        return value
    raise WrongValueError("a string")


def _one_of(values: type[StrEnum]) -> Rule:
    def rule(value: Any) -> StrEnum:
        if isinstance(value, str) and value in tuple(values):
            return values(value)
        raise WrongValueError(f"one of {', '.join(values)}")

    return rule


def _kind_or_empty(value: Any) -> Any:
    return value if value == "" else _one_of(Kind)(value)


def _seconds(least: float) -> Rule:
    def rule(value: Any) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and least <= value <= _YEAR_S:  # not so for nan and inf
            return float(value)
        raise WrongValueError(f"a number of seconds from {least:g} to {_YEAR_S}")

    return rule


def _count(least: int) -> Rule:
    def rule(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value < 1_000_000:
            return value
        raise WrongValueError(f"a whole number from {least} to 999999")

    return rule


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(v, str) and v and "\0" not in v for v in value):
        return tuple(value)
    raise WrongValueError("a list of strings that are not empty")


def _patterns_inside(value: Any) -> tuple[str, ...]:
    patterns = _texts(value)
    if any(pattern.startswith("/") or ".." in pattern.split("/") for pattern in patterns):
        raise WrongValueError(
            "a list of patterns inside the repository, without / at the front or .."
        )
    return patterns


def _command(value: Any) -> tuple[str | tuple[str, ...], ...]:
    if isinstance(value, list) and value and isinstance(value[0], str) and value[0]:
        with suppress(WrongValueError):
            return tuple(tuple(map(_text, p)) if _is_group(p) else _text(p) for p in value)
    raise WrongValueError('a program and its arguments, such as ["prog", ["--", "{task}"]]')


def _is_group(part: Any) -> bool:
    return isinstance(part, list) and bool(part)


def _resume(value: Any) -> tuple[str | tuple[str, ...], ...]:
    return () if value == [] else _command(value)


def _regex(value: Any) -> str:
    text = _text(value)
    try:
        re.compile(text, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise WrongValueError(f"a regular expression ({error})") from error
    return text


def _box(value: Any) -> str:
    text = _regex(value)
    if text and re.compile(text).groups != 1:
        raise WrongValueError("a regular expression with one group, for what is in the box")
    return text


def _leads(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        texts = [_text(v) for v in value]
        if all(re.fullmatch(r"\S \S.*", text) for text in texts):
            return tuple(texts)
    raise WrongValueError('a list such as ["! runs a shell command"]')


def _branch_prefix(value: Any) -> str:
    text = _text(value)
    parts = text.removesuffix("/").split("/")
    if text == "" or all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", part) for part in parts):
        return text
    raise WrongValueError("letters, digits, _ and -, in parts separated by /")


def _revision(value: Any) -> str:
    text = _text(value)
    if text.startswith("-") or not text.isprintable() or " " in text:
        raise WrongValueError("a branch, tag or commit")
    return text


SECTIONS: Mapping[str, Mapping[str, Rule]] = {
    "defaults": {
        "agent": _text,
        "branch_prefix": _branch_prefix,
        "base": _revision,
        "kind": _one_of(Kind),
    },
    "setup": {"copy": _patterns_inside, "run": _texts, "timeout_s": _seconds(1)},
    "cleanup": {
        "dead": _one_of(DeadPolicy),
        "never_started_s": _seconds(1),
        "grace_s": _seconds(0),
    },
    "restart": {
        "limit": _count(0),
        "window_s": _seconds(1),
        "first_delay_s": _seconds(0),
        "max_delay_s": _seconds(0),
        "healthy_s": _seconds(0),
    },
    "salvage": {"ignored_cap_mb": _count(0)},
    "history": {"keep_days": _count(0)},
    "tmux": {"timeout_s": _seconds(0.1)},
}

AGENT: Mapping[str, Rule] = {
    "command": _command,
    "task": _one_of(TaskBy),
    "resume": _resume,
    "resume_failed": _regex,
    "ready": _regex,
    "busy": _regex,
    "waiting": _regex,
    "trust": _regex,
    "title_busy": _regex,
    "title_waiting": _regex,
    "title_idle": _regex,
    "box": _box,
    "placeholder": _regex,
    "queued": _regex,
    "leads": _leads,
    "literal": _text,
    "answer": _one_of(AnswerBy),
    "region": _count(1),
    "kind": _kind_or_empty,
}

# A repository may say how its own work is done, not how the person's screen, server, history and
# safety net behave for every repository.
PERSONAL = frozenset({"salvage", "history", "tmux", "keys"})


class FileCheck:
    """The good values of one file by key, and what is wrong with the others.

    `known` names the agents of the files before this one, which need no command of their own.
    """

    def __init__(self, data: Mapping[str, Any], known: Iterable[str], *, personal: bool) -> None:
        self.values: dict[Key, Any] = {}
        self.problems: list[str] = []
        self.agents = set(known)
        for name, table in data.items():
            if name not in {*SECTIONS, "agents", "keys"}:
                self._unknown((name,), [*SECTIONS, "agents", "keys"])
            elif name in PERSONAL and not personal:
                self._problem((name,), "only your own config file can set this")
            elif not isinstance(table, dict):
                self._expected((name,), "a table", table)
            elif name == "agents":
                self._check_agents(table)
            elif name == "keys":
                self._check_free((name,), table)
            else:
                self._check_table((name,), table, SECTIONS[name])
        self._check_default_agent()

    def _check_agents(self, agents: Mapping[str, Any]) -> None:
        for name, table in agents.items():
            key = ("agents", name)
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
                self._problem(key, "expected a name of up to 40 letters, digits, - and _")
            elif not isinstance(table, dict):
                self._expected(key, "a table", table)
            else:
                rest = {k: v for k, v in table.items() if k != "env"}
                self._check_table(key, rest, AGENT, also="env")
                env = table.get("env", {})
                if isinstance(env, dict):
                    self._check_free((*key, "env"), env)
                else:
                    self._expected((*key, "env"), "a table of strings", env)
                if name not in self.agents and "command" not in table:
                    self._problem((*key, "command"), "missing: what shall be run?")
            self.agents.add(name)

    def _check_table(
        self, key: Key, table: Mapping[str, Any], rules: Mapping[str, Rule], also: str = ""
    ) -> None:
        for name, value in table.items():
            if name in rules:
                self._take((*key, name), value, rules[name])
            else:
                self._unknown((*key, name), [*rules, also])

    def _check_free(self, key: Key, table: Mapping[str, Any]) -> None:
        for name, value in table.items():
            if not name or "=" in name or "\0" in name:
                self._problem((*key, name), "expected a name without =")
            else:
                self._take((*key, name), value, _text)

    def _check_default_agent(self) -> None:
        agent = self.values.get(("defaults", "agent"))
        if agent is not None and agent not in self.agents:
            expected = f"one of {', '.join(sorted(self.agents))}"
            self._expected(("defaults", "agent"), expected, agent)

    def _take(self, key: Key, value: Any, rule: Rule) -> None:
        try:
            self.values[key] = rule(value)
        except WrongValueError as wrong:
            self._expected(key, str(wrong), value)

    def _unknown(self, key: Key, known: Iterable[str]) -> None:
        import difflib

        close = difflib.get_close_matches(key[-1], list(known), n=1)
        self._problem(key, f"unknown; did you mean {close[0]}?" if close else "unknown")

    def _expected(self, key: Key, expected: str, got: Any) -> None:
        shown = quote(got)
        if len(shown) > _SHOWN_MAX:
            shown = shown[:_SHOWN_MAX] + "…"
        self._problem(key, f"expected {expected}; got {shown}")

    def _problem(self, key: Key, problem: str) -> None:
        self.problems.append(f"{dotted(key)}: {problem}")


def dotted(key: Key) -> str:
    """The key as TOML spells it, each part quoted if it has to be."""
    return ".".join(k if re.fullmatch(r"[A-Za-z0-9_-]+", k) else quote(k) for k in key)


def quote(value: Any) -> str:
    """The value as TOML spells it, safe to print on a terminal."""
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{dotted((k,))} = {quote(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(quote, value)) + "]"
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return re.sub("[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text)
    return str(value).lower() if isinstance(value, bool) else str(value)
