"""The keys of the main screen; the name of each can be given other keys in the config."""

from __future__ import annotations

from textual.binding import Binding

# key, action, words, name in [keys]
_KEYS = (
    ("enter", "attach", "attach", "attach"),
    ("n", "new", "new", "new"),
    ("i", "send", "send", "send"),
    ("d,delete", "remove", "remove", "remove"),
    ("R", "restart", "restart", "restart"),
    ("x", "stop", "stop", "stop"),
    ("m", "merge", "merge", "merge"),
    ("D", "diff", "diff", "diff"),
    ("w", "next_waiting", "next waiting", "next_waiting"),
    ("u", "undo", "undo", "undo"),
    ("r", "rename", "rename", "rename"),
    ("t", "shell", "shell", "shell"),
    ("y", "why", "why", "why"),
    ("space", "mark", "mark", "mark"),
    ("asterisk", "mark_all", "mark all", "mark_all"),
    ("slash", "filter", "filter", "filter"),
    ("a", "everywhere", "all repositories", "everywhere"),
    ("tab,right_square_bracket", "tab(1)", "next tab", "next_tab"),
    ("shift+tab,left_square_bracket", "tab(-1)", "previous tab", "previous_tab"),
    ("H", "history", "history", "history"),
    ("S", "sweep", "sweep", "sweep"),
    ("j,down", "move(1)", "down", "down"),
    ("k,up", "move(-1)", "up", "up"),
    ("g,home", "first", "first", "first"),
    ("G,end", "last", "last", "last"),
    ("J,pagedown", "scroll(1)", "scroll down", "scroll_down"),
    ("K,pageup", "scroll(-1)", "scroll up", "scroll_up"),
    ("escape", "clear", "clear marks and filter", "clear"),
    ("colon,ctrl+p", "palette", "commands", "palette"),
    ("question_mark", "help", "help", "help"),
    ("q", "quit", "quit", "quit"),
)

BINDINGS = [
    *(Binding(key, action, words, id=name) for key, action, words, name in _KEYS),
    *(Binding(str(n), f"go_to({n})", f"agent {n}", id=f"agent_{n}") for n in range(1, 10)),
]
NAMES = frozenset(binding.id for binding in BINDINGS)

# What the bottom line offers, the most useful first; the last one always has its place.
OFFERED = ("attach", "new", "send", "remove", "restart", "merge", "undo", "diff", "next_waiting",
           "filter", "stop", "everywhere", "quit", "history", "shell", "why", "mark", "rename",
           "sweep", "palette", "help")  # fmt: skip
