"""The plan of the house in numbers, read off the code: what docs/architecture.md shows.

`house.py` prints it, `--write` puts it into the page, `--check` fails if the page says otherwise
or a rule does not hold. tests/unit/test_house.py holds the same rules.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tmuxorch"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- house: begin -->", "<!-- house: end -->"

MODULE_LINES, FUNCTION_LINES = 400, 60
# One file by need: it runs with `python -I -S`, before anything of ours can be found.
LONG = {"tmuxorch.shim"}
# Which rooms may be asked from which; a room may always ask itself.
BASE = {"errors", "values", "model", "reading", "paths"}
CORE = {"core", "config"} | BASE
ADAPTERS = {"adapters.tmux", "adapters.git", "adapters.system", "adapters.store"}
SERVICE = {
    f"service.{name}" for name in ("workers", "health", "removal", "sweep", "landing", "care")
}
SERVICE |= {"service"}
MAY_ASK = {
    "errors": set(),
    "values": set(),
    "model": {"errors", "values"},
    "paths": {"errors", "model"},
    "reading": {"errors"},
    "config": BASE | {"core"},
    "core": BASE | {"config"},
    "shim": set(),
    **dict.fromkeys(ADAPTERS, ADAPTERS | CORE | {"shim"}),
    **dict.fromkeys(SERVICE, SERVICE | ADAPTERS | CORE | {"shim", "package"}),
    "tui": SERVICE | CORE | {"package"},
    "cli": SERVICE | CORE | {"tui", "package"},
    "package": {"cli"},
}


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    lines: int
    tree: ast.Module

    @property
    def room(self) -> str:
        """The first name below the package, or the first two where that is a storey of rooms."""
        parts = self.name.split(".")[1:]
        if not parts or parts == ["__main__"]:
            return "package"
        if parts[0] in ("adapters", "service") and len(parts) > 2:
            return ".".join(parts[:2])
        return parts[0]


def read_modules(package: Path = PACKAGE) -> dict[str, Module]:
    """Every module that holds code, by its full name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        text = path.read_text()
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        name = name.removesuffix(".__init__")
        if text.strip():
            found[name] = Module(name, path, text.count("\n"), ast.parse(text))
    return found


def imports(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    """The modules that it imports anywhere, also late or for types alone."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in modules:
                    yield whole
                elif node.module in modules:
                    yield node.module


def is_typing_only(module: Module) -> set[str]:
    """What it imports for the type checker alone."""
    found = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for inner in node.body:
                if isinstance(inner, ast.ImportFrom) and inner.module:
                    found.update({inner.module, *(f"{inner.module}.{a.name}" for a in inner.names)})
    return found


def edges(modules: dict[str, Module], *, types: bool = True) -> dict[str, set[str]]:
    """Who imports whom; without `types`, only what is imported when the program runs."""
    found: dict[str, set[str]] = {}
    for name, module in modules.items():
        asked = set(imports(module, modules)) - {name}
        found[name] = asked if types else asked - is_typing_only(module)
    return found


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that need each other (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def long_functions(module: Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{module.name}.{node.name}", lines


def shared_names(modules: dict[str, Module]) -> dict[str, list[str]]:
    """Public classes of one name that stand in several modules."""
    places = defaultdict(list)
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def broken_rules(modules: dict[str, Module]) -> list[str]:
    """What does not hold, in a line each."""
    found = []
    for module in modules.values():
        if module.lines > MODULE_LINES and module.name not in LONG:
            found.append(f"{module.name} has {module.lines} lines, more than {MODULE_LINES}")
        found += [
            f"{name} has {n} lines, more than {FUNCTION_LINES}"
            for name, n in long_functions(module)
        ]
    asked = edges(modules)
    for name, others in asked.items():
        room = modules[name].room
        for other in sorted(others):
            to = modules[other].room
            if to != room and to not in MAY_ASK[room]:
                found.append(f"{name} ({room}) must not ask {other} ({to})")
    found += [
        f"need each other: {', '.join(group)}" for group in cycles(edges(modules, types=False))
    ]
    return found


def plan(modules: dict[str, Module]) -> str:
    """The table of rooms."""
    rooms: dict[str, list[Module]] = defaultdict(list)
    for module in modules.values():
        rooms[module.room].append(module)
    asked = edges(modules)
    into: Counter[str] = Counter()
    out: Counter[str] = Counter()
    between: Counter[tuple[str, str]] = Counter()
    for name, others in asked.items():
        for other in others:
            pair = modules[name].room, modules[other].room
            if pair[0] != pair[1]:
                between[pair] += 1
                out[pair[0]] += 1
                into[pair[1]] += 1
    rows = [
        "| room | modules | median lines | longest | asked from | asks |",
        "|---|---|---|---|---|---|",
    ]
    for room in sorted(rooms):
        lines = [module.lines for module in rooms[room]]
        longest = max(rooms[room], key=lambda module: module.lines)
        rows.append(
            f"| {room} | {len(lines)} | {statistics.median(lines):.0f} | "
            f"{longest.name.rpartition('.')[2]} {longest.lines} | {into[room]} | {out[room]} |"
        )
    every = [module.lines for module in modules.values()]
    rows.append(f"| all | {len(every)} | {statistics.median(every):.0f} | {max(every)} | | |")
    return "\n".join([*rows, "", *_edges(between)])


def _edges(between: Counter[tuple[str, str]]) -> Iterable[str]:
    by_room: dict[str, list[str]] = defaultdict(list)
    for (room, other), number in sorted(between.items()):
        by_room[room].append(f"{other} {number}")
    return (f"* {room} asks {', '.join(others)}" for room, others in by_room.items())


def with_plan(page: str, table: str) -> str:
    """The page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main(args: list[str]) -> int:
    modules = read_modules()
    table = plan(modules)
    broken = broken_rules(modules)
    if args == ["--write"]:
        PAGE.write_text(with_plan(PAGE.read_text(), table))
    elif args == ["--check"]:
        if with_plan(PAGE.read_text(), table) != PAGE.read_text():
            broken.append(f"{PAGE.name} is not up to date; run scripts/house --write")
    else:
        print(table)
        for name, where in shared_names(modules).items():
            print(f"class {name} stands in {', '.join(where)}")
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
