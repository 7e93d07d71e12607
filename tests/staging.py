"""A worker whose program is a stub that draws an agent's screens."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.conftest import World, wait_for

STUB = Path(__file__).parent / "stub_agent.py"
STYLES = ("claude", "codex", "gemini", "opencode", "aider")


class Stage:
    """One worker that is a stub of a program, and what it was given."""

    def __init__(self, world: World, style: str) -> None:
        self.world = world
        self.style = style
        command = json.dumps([sys.executable, str(STUB), style])
        config = f'[agents.{style}]\ncommand = {command}\ntask = "none"\nresume = []\n'
        Path(world.environ["TMUXORCH_CONFIG"]).write_text(config)
        self.made = world.new("-n", "a", "-a", style)
        self.directory = Path(self.made["worktree"])

    def does(self, what: str, **wish: Any) -> None:
        """Have it do this, and wait until it is seen to."""
        new = self.directory / "state.new"
        new.write_text(json.dumps({"does": what, **wish}))
        new.rename(self.directory / "state")
        seen = {"idle": "idle", "busy": "working", "asking": "waiting"}.get(what)
        if seen:
            wait_for(lambda: self.status() == seen, what=f"{what} to be seen")

    def status(self) -> str:
        return str(self.explained()["status"])

    def explained(self) -> dict[str, Any]:
        found: dict[str, Any] = self.world.json("explain", "a")
        return found

    def log(self, *kinds: str) -> list[tuple[str, str]]:
        path = self.directory / "log"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [(what, text) for what, text in rows if not kinds or what in kinds]

    def pasted(self) -> list[str]:
        return [text for _, text in self.log("pasted")]

    def taken(self) -> list[str]:
        return [text for _, text in self.log("taken")]
