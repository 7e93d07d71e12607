"""Run the real programs against a fake model, and print how right tmuxorch is about them."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agents_lab import table
from agents_lab.model import Model, serve
from agents_lab.programs import PROGRAMS, Lab, install, set_up, version
from agents_lab.trial import Trial

LIMIT_S = 420  # for one program


def main() -> int:
    args = _arguments()
    programs = Path(args.dir).absolute()
    names = args.programs or list(PROGRAMS)
    if args.install:
        install(programs, names)
        return 0
    _raise_loopback()
    # A socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="agents-"))
    lab = Lab(folder, programs)
    try:
        trials = [_run(lab, name) for name in names]
    finally:
        subprocess.run(["tmux", "-S", lab.socket, "kill-server"], capture_output=True, check=False)
        if args.keep:
            _tell(f"kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    versions = {name: version(lab, name) for name in names}
    sys.stdout.write(table.markdown(trials, versions, time.strftime("%Y-%m-%d")))
    return 1 if any(c.right is False for t in trials for c in t.cells.values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/agents", description=__doc__)
    parser.add_argument("programs", nargs="*", choices=[*PROGRAMS, []], metavar="AGENT")
    parser.add_argument("--dir", required=True, help="where the programs are installed")
    parser.add_argument("--keep", action="store_true", help="keep screens of what was wrong")
    parser.add_argument("--install", action="store_true", help="only install the programs")
    return parser.parse_args()


def _run(lab: Lab, name: str) -> Trial:
    made = lab.made(name)
    model = Model(f"touch {made} && echo ok")
    port = serve(model)
    set_up(lab, port)
    trial = Trial(lab, name, model, lab.environ(port), _tell)

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_S)
    try:
        trial.run()
    except TimeoutError:
        _tell(f"{name}: no more than {LIMIT_S} s")
    finally:
        signal.alarm(0)
    return trial


def _raise_loopback() -> None:
    """A namespace without a network begins with loopback down."""
    get, change, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(s, get, request))[1]
        if not flags & up:
            fcntl.ioctl(s, change, struct.pack("16sh22x", b"lo", flags | up))


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
