"""`python -m viz`: the commands of features that need no torch. `python -m model` has them beside its own."""

import sys

import click

from model.cli.program import run_program
from model.feature import attribute, features


class Program(click.Group):
    """The commands that features keep in viz, each imported when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name; None: there is none."""
        command: click.Command | None = attribute(path) if (path := _commands().get(cmd_name)) else None
        return command


def _commands() -> dict[str, str]:
    """MODULE:NAME of each command, by its name."""
    commands = (item for feature in features() for item in feature.commands.items())
    return {name: path for name, path in commands if path.startswith("viz.")}


@click.group(cls=Program)
def cli() -> None:
    """Draws what a trace recorded, and checks lectures."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit status, 0 for success. Errors are one line on standard error."""
    return run_program(cli, "python -m viz", arguments)


if __name__ == "__main__":
    sys.exit(main())
