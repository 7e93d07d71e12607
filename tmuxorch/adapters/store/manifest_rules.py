"""What a manifest may say: it is a file that somebody may have changed since it was written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
MODE_MAX = 0o177777


def check_fields(said: Mapping[str, object]) -> None:
    """ValueError names the first field that has a value which no save of ours has."""
    for key, is_right in RULES.items():
        if key in said and not is_right(said[key]):
            raise ValueError(f"its {key} is nothing that tmuxorch has written")


def is_inside(path: object) -> bool:
    """Whether a path leads to something below the directory that it is taken from."""
    if not isinstance(path, str) or "\0" in path:
        return False
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return not {"", ".", ".."}.intersection(path.split("/"))


def _is_kept(entry: object) -> bool:
    if not isinstance(entry, list) or len(entry) != 3:
        return False
    path, mode, size = entry
    return is_inside(path) and _is_number(mode, MODE_MAX) and _is_number(size, 1 << 63)


def _is_inner(entry: object) -> bool:
    if not isinstance(entry, list) or len(entry) != 4:
        return False
    path, own, head, branch = entry
    named = is_inside(path) and isinstance(own, str) and is_inside(os.path.basename(own))
    return named and _maybe(_is_oid)(head) and _maybe(_is_branch)(branch)


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_oid(value: object) -> bool:
    return isinstance(value, str) and OID.fullmatch(value) is not None


def _is_branch(value: object) -> bool:
    return is_inside(value) and isinstance(value, str) and value[0] != "-" and ".." not in value


def _all(is_right: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(is_right, value))


def _maybe(is_right: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or is_right(value)


RULES: dict[str, Callable[[object], bool]] = {
    "head": _maybe(_is_oid),
    "branch": _maybe(_is_branch),
    "tip": _maybe(_is_oid),
    "whole": lambda value: isinstance(value, bool),
    "usual": lambda value: _is_number(value, 0o777),
    "kept": _all(_is_kept),
    "gone": _all(is_inside),
    "commits": _all(_is_oid),
    "pack": _maybe(_is_oid),
    "admin": _maybe(lambda value: isinstance(value, str)),
    "inner": _all(_is_inner),
    "top": lambda value: isinstance(value, str),
}
