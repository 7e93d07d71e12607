"""Data on stdout."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=1) + "\n")
