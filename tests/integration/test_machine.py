"""Which machine this is, told by what its files say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tmuxorch

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="only root, with unshare, can put other files in the place of the system's",
)
SAY = "from tmuxorch.adapters.system.machine import read_machine; print(read_machine())"
MACHINE_ID = Path("/etc/machine-id")


def machine(tmp_path: Path, *, machine_id: str | None = None, host: str = "") -> str:
    """What a Python says that sees this machine id (empty: none at all) and host name."""
    steps = [f"hostname {host}"] if host else []
    if machine_id is not None:
        if not MACHINE_ID.exists():
            pytest.skip("there is no /etc/machine-id to put another over")
        other = tmp_path / "machine-id"
        other.write_text(machine_id)
        steps.append(f"mount --bind {other} {MACHINE_ID}")
        empty = tmp_path / "none"
        empty.touch()
        if os.path.exists("/var/lib/dbus/machine-id") and not machine_id:
            steps.append(f"mount --bind {empty} /var/lib/dbus/machine-id")
    script = " && ".join([*steps, 'exec "$@"'])
    done = subprocess.run(
        ["unshare", "--mount", "--uts", "sh", "-c", script, "sh", sys.executable, "-c", SAY],
        cwd=Path(tmuxorch.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and done.stderr.startswith(("unshare: ", "mount: ", "sh: ", "hostname: ")):
        pytest.skip(f"not possible here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_machine_is_the_same_each_time_and_says_nothing_of_its_id(tmp_path: Path) -> None:
    number = "0123456789abcdef" * 2
    first = machine(tmp_path, machine_id=number, host="one")
    assert first == machine(tmp_path, machine_id=number + "\n", host="one")
    assert first
    assert first not in number


def test_a_copy_of_an_image_and_a_namesake_are_other_machines(tmp_path: Path) -> None:
    ids = ["0123456789abcdef" * 2, "f" * 32]
    found = {machine(tmp_path, machine_id=i, host=host) for i in ids for host in ("one", "two")}
    assert len(found) == 4


@pytest.mark.parametrize("nothing", ["", "uninitialized\n"])
def test_without_a_machine_id_the_root_file_system_speaks_for_it(
    tmp_path: Path, nothing: str
) -> None:
    one = machine(tmp_path, machine_id=nothing, host="one")
    assert one == machine(tmp_path, machine_id=nothing, host="one")
    assert one not in ("", machine(tmp_path, machine_id=nothing, host="two"))
