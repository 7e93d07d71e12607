"""The door to the terminal, opened before streams of any kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from tmuxorch.cli.output import open_door
sys.stderr = open(sys.argv[1], "w")
open_door()
sys.stderr.write("said\\n")
sys.stderr.flush()
"""


def test_a_stream_that_nobody_else_holds_stays_open_behind_the_door(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", CODE, str(tmp_path / "said")], check=True)
    assert (tmp_path / "said").read_text() == "said\n"
