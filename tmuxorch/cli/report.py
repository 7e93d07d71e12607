"""`tmuxorch report`: what an agent is doing, told by its own hooks; cheap, for it comes often."""

from __future__ import annotations

import os
import sys
import time

from tmuxorch import paths
from tmuxorch.service.workers.reporting import parse_status, report


def report_own(word: str) -> int:
    """Report for the agent in whose environment this runs.

    Outside of one nothing happens and that is no failure: the same hooks run there too. Nothing
    goes to stdout, which some agents take for a message to them.
    """
    status = parse_status(word)
    agent_id = os.environ.get("TMUXORCH_AGENT_ID")
    if not agent_id:
        sys.stderr.write("not inside an agent of tmuxorch: nothing to report\n")
        return 0
    report(paths.state_dir(os.environ), agent_id, status, at=time.time())
    return 0
