"""`python -m tmuxorch`, the same as `tmuxorch`."""

from tmuxorch.cli.main import main

main()
