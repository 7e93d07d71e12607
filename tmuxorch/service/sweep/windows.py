"""Windows and processes that carry our marker though no worker is recorded for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tmuxorch.adapters.system import process_table
from tmuxorch.adapters.system.process_row import Row
from tmuxorch.adapters.tmux.server import Pane
from tmuxorch.core.literal import pasteable
from tmuxorch.errors import TmuxNoServer, TmuxorchError, sure
from tmuxorch.model import AgentId
from tmuxorch.service.context import Context
from tmuxorch.service.sweep.orphan import Disposal, Look, Orphan, Thing


def observe_windows(look: Look) -> Iterator[Orphan]:
    """Windows that only a shim still holds may be closed; one with a live agent is reported."""
    sockets = {look.ctx.socket, *(agent.run.socket for agent in look.agents.values())}
    for socket in sorted(sockets):
        try:
            panes = look.ctx.tmux(socket).panes()
        except TmuxNoServer:
            continue
        except TmuxorchError as unknown:
            look.ctx.narrate(f"the windows on {socket} were not looked at: {unknown.message}")
            continue
        for pane in panes:
            if not look.is_recorded(pane.agent_id) and _is_ours(look.ctx, pane):
                yield _window(look, socket, pane)


def _window(look: Look, socket: str, pane: Pane) -> Orphan:
    live = [row for row in look.serving(pane.agent_id) if row.pid != pane.pid]
    reason = f"it carries the mark of {pane.agent_id}, and no worker has that"
    command = None
    if live:
        reason += f"; process {live[0].pid} ({process_table.read_command(live[0])}) runs in it"
        command = pasteable(["tmux", "-S", socket, "kill-pane", "-t", pane.place.pane])
    return Orphan(
        Thing.WINDOW,
        reason,
        Disposal.REPORT if live else Disposal.REMOVE,
        id=pane.place.window,
        command=command,
        socket=socket,
        agent_id=pane.agent_id,
    )


def _is_ours(ctx: Context, pane: Pane) -> bool:
    """Whether the pane's shim works for this store: another's agents may share the server."""
    return any(
        ctx.run_dir(pane.agent_id) in argument
        for argument in process_table.read_arguments(pane.pid)
    )


def close_window(ctx: Context, orphan: Orphan) -> None:
    tmux = ctx.tmux(orphan.socket)
    pane = tmux.find_pane(sure(orphan.agent_id, "a window was found by its agent's id"))
    if pane is not None and _is_ours(ctx, pane):
        tmux.close_pane(pane)


def observe_processes(look: Look) -> Iterator[Orphan]:
    """Processes of workers that are gone, to be shown with the command that ends them."""
    for row in look.processes:
        if row.marker is None or row.is_tmux_server or row.pid == os.getpid():
            continue
        if look.is_recorded(row.marker) or not _works_for(look, row):
            continue
        yield Orphan(
            Thing.PROCESS,
            f"{process_table.read_command(row)}: it was started for {row.marker}, "
            "and no worker has that",
            Disposal.REPORT,
            pid=row.pid,
            command=f"kill {row.pid}",
            agent_id=AgentId(row.marker),
        )


def _works_for(look: Look, row: Row) -> bool:
    """Whether it was started by this store; the marker alone does not say by which."""
    run_dirs = os.path.join(look.ctx.state_dir, "run") + os.sep
    own = b"TMUXORCH_TASK_FILE=" + os.fsencode(run_dirs)
    environ = (row.environ or b"").split(b"\0")
    return row.marker in look.removed or any(entry.startswith(own) for entry in environ)
