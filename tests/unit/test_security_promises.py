"""Each promise of SECURITY.md names tests, and they exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()


def test_each_promise_names_tests_that_exist() -> None:
    promises = re.findall(r"^\d+\. .*", TEXT, re.MULTILINE)
    assert len(promises) >= 9
    for promise in promises:
        assert "::test_" in promise, promise
    for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


def test_the_readme_leads_to_it() -> None:
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text()
