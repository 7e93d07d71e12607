"""The full command line: verbs are loaded only when they are called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from tmuxorch import __version__
from tmuxorch.cli.border import INTERRUPTED, USAGE, complain, let_reader_go, wants_json
from tmuxorch.cli.session import Session

VERBS = {
    "new": "make a worker",
    "ls": "the live agents",
    "show": "one agent, with its health facts",
    "attach": "look at an agent's window",
    "send": "send a message to an agent",
    "answer": "choose an answer of the question that an agent asks",
    "logs": "an agent's screen and scrollback",
    "diff": "an agent's work against its base",
    "merge": "bring its work into its base branch",
    "stop": "end the process, keep the worktree",
    "restart": "start an agent again",
    "rm": "save and remove agents",
    "restore": "bring a removed worker back",
    "history": "removed workers, newest first",
    "sweep": "find what lies around, and clear it away",
    "explain": "why its status is what it is",
    "why": "what was seen of one agent, and done about it",
    "events": "the decision log of all agents",
    "watch": "the health loop",
    "doctor": "is everything well?",
    "report": "say what an agent is doing, from its own hooks",
    "init": "write a commented configuration",
    "config": "show the effective configuration",
    "completion": "print shell completion",
    "demo": "six scripted agents in a throw-away repository",
}


class Verbs(click.Group):
    """A group whose commands are modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"tmuxorch.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, VERBS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click's own main would make it exit status 1
            return let_reader_go()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


_MODULES = {"ls": "ls_command", "report": "report_command"}


def _store(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            setattr(ctx.obj, key, value)

    return callback


def common_options(f: Any) -> Any:
    """The options that work both before and after the verb."""
    options = [
        click.option(
            "-L", "socket_name", metavar="NAME", expose_value=False, callback=_store("socket_name"),
            help="tmux server by socket name.",
        ),
        click.option(
            "-S", "socket_path", metavar="PATH", expose_value=False, callback=_store("socket_path"),
            help="tmux server by socket path.",
        ),
        click.option(
            "--repo", metavar="PATH", expose_value=False, callback=_store("repo_path"),
            help="The repository; default: the one around the current directory.",
        ),
        click.option(
            "-q", "--quiet", is_flag=True, default=None, expose_value=False,
            callback=_store("quiet"), help="Say nothing on stderr but errors.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        f = option(f)
    return f


def json_option(f: Any) -> Any:
    """`--json`; it silences narration too, so that stderr is an error's JSON or nothing."""
    option = click.option("--json", "as_json", is_flag=True, callback=_silence, help="Print JSON.")
    return option(f)


def json_errors_option(f: Any) -> Any:
    """`--json` before the verb, and after one that has no data to give as JSON."""
    option = click.option(
        "--json", is_flag=True, expose_value=False, callback=_silence, help="JSON, errors too."
    )
    return option(f)


def _silence(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    session: Session = ctx.obj
    session.as_json = session.as_json or value
    session.quiet = session.quiet or value
    return session.as_json


def complete_name(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Names of live agents for the shell."""
    from tmuxorch import paths
    from tmuxorch.service.listing import Listing

    agents = Listing.open(paths.state_dir(os.environ)).agents()
    return sorted(agent.task.name for agent in agents if agent.task.name.startswith(incomplete))


def complete_choice(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Keys of the answers that the named agent's question offers, for the shell."""
    from tmuxorch import paths
    from tmuxorch.service.listing import Listing

    agents = Listing.open(paths.state_dir(os.environ)).agents()
    asked = [a.run.question for a in agents if a.task.name == ctx.params.get("name")]
    keys = [choice.key for question in asked if question for choice in question.choices]
    return [key for key in keys if key.startswith(incomplete)]


def complete_removed(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Names of removed workers for the shell."""
    from tmuxorch import paths
    from tmuxorch.service.listing import Listing

    names = set(Listing.open(paths.state_dir(os.environ)).removed_names(limit=1000))
    return sorted(name for name in names if name.startswith(incomplete))


def name_argument(f: Any) -> Any:
    return click.argument("name", shell_complete=complete_name)(f)


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Start with: tmuxorch new "what the agent shall do"',
)
@json_errors_option
@common_options
@click.version_option(
    __version__, "--version", prog_name="tmuxorch", message="%(prog)s %(version)s"
)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Run many coding agents side by side in tmux, each on its own git worktree."""
    if ctx.invoked_subcommand is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            click.echo(ctx.get_help())
            return
        from tmuxorch.cli.screen import open_screen

        ctx.exit(open_screen(ctx.obj))


def run(args: Sequence[str]) -> int:
    """Parse and run; usage errors and interrupts become their exit statuses."""
    as_json = wants_json(args)
    try:
        status = app.main(
            args=list(args), prog_name="tmuxorch", standalone_mode=False, obj=Session()
        )
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.format_message(), err=True)
        return USAGE
    except click.UsageError as e:
        usage = f" (usage: {e.ctx.command_path} --help)" if e.ctx and not as_json else ""
        complain("usage", e.format_message().rstrip(".") + usage, as_json=as_json)
        return USAGE
    except click.ClickException as e:
        complain("failed", e.format_message(), as_json=as_json)
        return 1
    except click.Abort:
        sys.stderr.write("\n")
        complain("interrupted", "interrupted; nothing was changed", as_json=as_json)
        return INTERRUPTED
    return status if isinstance(status, int) else 0
