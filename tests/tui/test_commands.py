"""The table of commands: what is made from it says the same everywhere."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from textual.pilot import Pilot

from tests.tui.conftest import Stage
from tmuxorch.model import Exit, State, Status
from tmuxorch.tui.command import Group
from tmuxorch.tui.commands import BY_NAME, COMMANDS, OFFERED
from tmuxorch.tui.screens.help import help_lines

ROOT = Path(__file__).parent.parent.parent


def test_the_readme_lists_the_keys_of_the_screen() -> None:
    check = [sys.executable, str(ROOT / "scripts" / "keys.py"), "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_no_name_stands_for_two_commands_and_no_key_for_two() -> None:
    counts = Counter(command.name for command in COMMANDS)
    counts.update(f"key {key}" for command in COMMANDS for key in command.keys.split(","))
    assert [what for what, count in counts.items() if count > 1] == []


def test_every_command_has_words_and_a_sentence() -> None:
    assert [c.name for c in COMMANDS if not (c.words and c.help)] == []


def test_the_help_has_every_command_and_the_names_for_the_configuration(stage: Stage) -> None:
    async def story(_: Pilot[None]) -> None:
        said = "\n".join(
            "".join(text for text, _ in line.spans())
            for line in help_lines(stage.app, COMMANDS, {})
        )
        for command in COMMANDS:
            assert command.help in said, command.name
            assert command.name in said
        for command in COMMANDS:
            if command.group is not Group.NUMBERS:
                assert any(
                    line.endswith(f"  {command.help}") and line.split("  ")[0].strip()
                    for line in said.splitlines()
                ), command.name

    stage.play(story)


def test_the_palette_offers_what_can_be_done_here_and_now(stage: Stage) -> None:
    stage.record("ended", state=State.EXITED, status=Status.DONE, exit=Exit(0, None))

    async def story(_: Pilot[None]) -> None:
        await stage.until(lambda: stage.selected == "ended")
        offered = {c.title: c.help for c in stage.app.get_system_commands(stage.app.screen)}
        assert offered["remove"] == f"key d: {BY_NAME['remove'].help}"
        assert "restart" in offered
        assert not {"send", "stop", "next waiting", "agent 1"} & offered.keys()

    stage.play(story)


def test_a_key_that_has_nothing_to_act_on_does_nothing(stage: Stage) -> None:
    async def story(_: Pilot[None]) -> None:
        await stage.see("No agents yet.")
        for command in COMMANDS:
            if command.name in ("attach", "send", "stop", "restart", "remove", "merge", "rename",
                                "diff", "why", "shell", "mark", "mark_all"):  # fmt: skip
                await stage.press(command.keys.split(",")[0])
                assert stage.on_board, command.name
        assert not stage.terminal.lent

    stage.play(story)


def test_the_last_of_the_bottom_line_is_the_help() -> None:
    assert OFFERED[-1].name == "help"
