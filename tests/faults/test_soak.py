"""A minute of every verb under SIGKILL, full disks and clock steps breaks no promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "soak"
SECONDS_EACH = 20


@pytest.mark.skipif(sys.platform != "linux", reason="the soak looks at processes through /proc")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_random_load_under_kills_breaks_no_promise(tmp_path: Path, seed: int) -> None:
    kept = tmp_path / "found"
    done = subprocess.run(
        [SCRIPT, "--seconds", str(SECONDS_EACH), "--seed", str(seed), "--keep", kept],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "violations: 0\n" in done.stdout, done.stdout + done.stderr
