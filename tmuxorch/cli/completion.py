"""`tmuxorch completion`: what the shell needs to complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tmuxorch.cli.app import common_options, json_errors_option
from tmuxorch.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@json_errors_option
@common_options
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print the completion script; for bash: eval "$(tmuxorch completion bash)"."""
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"there is no completion for {shell}")
    completion = kind(ctx.find_root().command, {}, "tmuxorch", "_TMUXORCH_COMPLETE")
    click.echo(completion.source_template % completion.source_vars())
    return 0
