"""The README's pictures: the demo's agents in the real program, painted as SVG."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable

from textual.pilot import Pilot

from tmuxorch.model import Status
from tmuxorch.service.care import demo
from tmuxorch.tui.app import TmuxorchApp
from tmuxorch.tui.workplace import Workplace

DEADLINE_S = 30.0


async def until(pilot: Pilot[None], look: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not look():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not come true, so there is no picture of it")
        await pilot.pause(0.05)


async def paint(place: demo.Stage, size: tuple[int, int], theme: str, path: str, keys: str) -> None:
    workplace = Workplace(
        environ=place.environ,
        socket=place.socket,
        repo=place.repo,
        cwd=place.repo,
        keys={},
        theme=theme,
    )
    app = TmuxorchApp(workplace)
    async with app.run_test(size=size, notifications=False) as pilot:
        statuses = {Status.WAITING, Status.DONE, Status.CRASHED, Status.WORKING}
        await until(
            pilot,
            lambda: statuses <= {row.status for row in app.board.roster.rows},
            "an agent of each status",
        )
        await until(pilot, lambda: len(app.board.roster.changes) == len(demo.CAST), "counted lines")
        for key in keys.split():
            await pilot.press(key)
            await pilot.pause(1.5)
        with open(path, "w", encoding="utf-8") as f:
            f.write(app.export_screenshot(title="tmuxorch"))
    print(path)


async def main(directory: str) -> None:
    os.makedirs(directory, exist_ok=True)
    with demo.stage(os.environ) as place:
        demo.start_agents(place)
        for name, size, theme, keys in (
            ("tmuxorch", (124, 24), "tmuxorch-dark", "w"),
            ("diff", (124, 24), "tmuxorch-light", "2 tab"),
        ):
            await paint(place, size, theme, os.path.join(directory, f"{name}.svg"), keys)


asyncio.run(main(sys.argv[1]))
