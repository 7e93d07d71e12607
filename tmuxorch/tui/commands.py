"""All that can be done on the main screen, a row each.

The bindings, the bottom line, the help, the palette, `[keys]` of the configuration and the
README's table are made from these rows: a new key is a row here and the function it names.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tmuxorch.model import State, Status
from tmuxorch.tui import (
    agent_commands,
    list_commands,
    removal_commands,
    view_commands,
    window_commands,
)
from tmuxorch.tui.command import Command, Group, Need

if TYPE_CHECKING:
    from tmuxorch.tui.roster import Roster


# fmt: off
COMMANDS = (
    Command("attach", "enter", "attach", Group.AGENTS, Need.AGENT, window_commands.attach, 10,
            help="attach to its window; of one that has ended, see what it left"),
    Command("new", "n", "new", Group.AGENTS, Need.NOTHING, agent_commands.new, 20,
            help="make a new worker for a task"),
    Command("send", "i", "send", Group.AGENTS, Need.RUNNING, agent_commands.send, 30, many=True,
            help="send it a message"),
    Command("stop", "x", "stop", Group.AGENTS, Need.RUNNING, agent_commands.stop, 110, many=True,
            help="stop it, after asking; its work stays"),
    Command("restart", "R", "restart", Group.AGENTS, Need.STARTED, agent_commands.restart, 50,
            many=True, help="restart or resume it; on a lost one, all lost ones"),
    Command("remove", "d,delete", "remove", Group.AGENTS, Need.AGENT, removal_commands.remove, 40,
            many=True, help="remove it, after saying what is at stake; its work is saved"),
    Command("undo", "u", "undo", Group.AGENTS, Need.NOTHING, removal_commands.undo, 70,
            is_timely=removal_commands.has_removed, help="undo: bring back what was removed last"),
    Command("rename", "r", "rename", Group.AGENTS, Need.AGENT, agent_commands.rename, 180,
            help="rename it"),
    Command("merge", "m", "merge", Group.AGENTS, Need.AGENT, agent_commands.merge, 60,
            help="merge its work into its base branch, after asking"),

    Command("next_tab", "tab,right_square_bracket", "next tab", Group.LOOKING, Need.NOTHING,
            partial(view_commands.turn_tab, by=1), help="next tab: screen, diff, timeline, health"),
    Command("previous_tab", "shift+tab,left_square_bracket", "previous tab", Group.LOOKING,
            Need.NOTHING, partial(view_commands.turn_tab, by=-1), help="previous tab"),
    Command("scroll_down", "J,pagedown", "scroll down", Group.LOOKING, Need.NOTHING,
            partial(view_commands.scroll, by=1), help="scroll down by half a page"),
    Command("scroll_up", "K,pageup", "scroll up", Group.LOOKING, Need.NOTHING,
            partial(view_commands.scroll, by=-1), help="scroll up by half a page"),
    Command("diff", "D", "diff", Group.LOOKING, Need.AGENT, view_commands.open_diff, 80,
            help="its diff since its base, on the whole screen"),
    Command("why", "y", "why", Group.LOOKING, Need.AGENT, view_commands.open_timeline, 160,
            help="why: what was done about it, and the reasons"),
    Command("shell", "t", "shell", Group.LOOKING, Need.AGENT, window_commands.open_shell, 150,
            help="open a shell in its worktree"),
    Command("history", "H", "history", Group.LOOKING, Need.NOTHING,
            removal_commands.open_history, 140,
            help="history: search removed workers, bring one back"),
    Command("sweep", "S", "sweep", Group.LOOKING, Need.NOTHING, removal_commands.open_sweep, 190,
            help="sweep: clear away what no agent owns any more"),

    Command("down", "j,down", "down", Group.LIST, Need.NOTHING,
            partial(list_commands.move, by=1), help="select the next agent"),
    Command("up", "k,up", "up", Group.LIST, Need.NOTHING,
            partial(list_commands.move, by=-1), help="select the one before"),
    Command("first", "g,home", "first", Group.LIST, Need.NOTHING, list_commands.go_to_first,
            help="select the first agent"),
    Command("last", "G,end", "last", Group.LIST, Need.NOTHING, list_commands.go_to_last,
            help="select the last agent"),
    Command("next_waiting", "w", "next waiting", Group.LIST, Need.WAITING,
            list_commands.go_to_waiting, 90, help="select the next waiting agent"),
    Command("mark", "space", "mark", Group.LIST, Need.AGENT, list_commands.mark, 170,
            help="mark it, or take its mark away"),
    Command("mark_all", "asterisk", "mark all", Group.LIST, Need.AGENT, list_commands.mark_all,
            help="mark all that are listed, or none"),
    Command("filter", "slash", "filter", Group.LIST, Need.NOTHING, list_commands.open_filter, 100,
            help="filter the list by name, task, branch or status"),
    Command("clear", "escape", "clear marks and filter", Group.LIST, Need.NOTHING,
            list_commands.clear, help="clear marks and filter"),
    Command("everywhere", "a", "all repositories", Group.LIST, Need.REPOSITORY,
            list_commands.toggle_everywhere, 120, help="show all repositories, or only this one"),

    *(Command(f"agent_{n}", str(n), f"agent {n}", Group.NUMBERS, Need.NOTHING,
              partial(list_commands.go_to, number=n), help="select one of the first nine")
      for n in range(1, 10)),

    Command("palette", "colon,ctrl+p", "commands", Group.SCREEN, Need.NOTHING,
            view_commands.open_palette, 200, help="find a command by its words"),
    Command("help", "question_mark", "help", Group.SCREEN, Need.NOTHING,
            view_commands.open_help, 990, help="help: the keys in force"),
    Command("quit", "q", "quit", Group.SCREEN, Need.NOTHING, view_commands.leave, 130,
            help="quit; agents go on"),
)
# fmt: on

BY_NAME = {command.name: command for command in COMMANDS}
OFFERED = sorted((c for c in COMMANDS if c.rank), key=lambda command: command.rank)


def met_needs(roster: Roster, *, in_repository: bool) -> frozenset[Need]:
    """What commands need and have, here and now."""
    chosen = roster.chosen
    runs = any(row.state is State.RUNNING for row in chosen)
    found = {
        Need.NOTHING: True,
        Need.AGENT: bool(chosen),
        Need.RUNNING: runs,
        Need.STARTED: runs or any(row.ended for row in chosen),
        Need.WAITING: any(row.status is Status.WAITING for row in roster.rows),
        Need.REPOSITORY: in_repository,
    }
    return frozenset(need for need, is_met in found.items() if is_met)
