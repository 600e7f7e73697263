"""Runs a command line of click, so that every program of the project reports its errors and writes its
files in the same way.
"""

import errno
from contextlib import suppress
from pathlib import Path

import click

from model.errors import BadSetting, HeadlightError


def run_program(commands: click.Group, name: str, arguments: list[str] | None) -> int:
    """Runs a command line. An error is one line on standard error.

    Args:
        commands: the commands of the program.
        name: how the program is started, as its help says it.
        arguments: the words after the name; None: those of this process.

    Returns:
        The exit status: 0 for success, 1 for an error of Headlight or a full disk, 2 for wrong arguments, 130 if the user
        interrupted it.
    """
    try:
        commands.main(arguments, prog_name=name, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return 2
    except click.ClickException as error:
        click.echo(" ".join(error.format_message().split()), err=True)
        return 2
    except click.Abort:
        click.echo("Stopped.", err=True)
        return 130
    except HeadlightError as error:
        click.echo(str(error), err=True)
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        click.echo("The disk is full: what was asked for could not be written completely. Make room, then try again.", err=True)
        return 1
    return 0


def write_output(path: Path, data: bytes) -> None:
    """Writes the file of `--out` atomically: a reader of an older file of that name never sees a part of the new one.

    Raises:
        BadSetting: the file cannot be written there.
    """
    fresh = path.with_name(path.name + ".part")
    try:
        fresh.write_bytes(data)
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise BadSetting(name="--out", found=str(path), allowed=f"a path that can be written ({error.strerror})") from error
