"""Facts about the world, and what it costs to have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tmuxorch
from tmuxorch.core.observation import Dead, ProcessFact, Unknown

SOURCE = str(Path(tmuxorch.__file__).parents[1])


def test_not_knowing_is_never_equal_to_being_dead() -> None:
    facts: list[ProcessFact] = [Unknown("same words"), Dead("same words"), Dead("same words")]
    assert facts[0] != facts[1]
    assert facts[1] == facts[2]


@pytest.mark.parametrize("module", ["tmuxorch.core.observation", "tmuxorch.adapters.system.procfs"])
def test_what_ls_imports_brings_no_costly_module_along(module: str) -> None:
    code = (
        f"import sys; sys.path.insert(0, {SOURCE!r}); import {module}; "
        "print({'typing', 'signal', 'subprocess', 'psutil', 'pathlib'} & sys.modules.keys())"
    )
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "set()"
