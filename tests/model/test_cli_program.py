"""How every command line of the project ends: exit status, and one line on standard error."""

import errno
import re
from pathlib import Path

import click
import pytest

from model.cli import progress
from model.cli.program import run_program
from model.errors import BadSetting


@click.group()
def cli() -> None:
    """Commands that fail, each in its own way."""


@cli.command()
def works() -> None:
    """Succeeds."""


@cli.command()
def stopped() -> None:
    """Is interrupted."""
    raise KeyboardInterrupt


@cli.command()
def refused() -> None:
    """Is refused."""
    raise BadSetting(name="--out", found="x", allowed="y")


@cli.command()
def full() -> None:
    """Writes where nothing fits."""
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["works"], 0, ""),
        ([], 2, "Usage: python -m that [OPTIONS] COMMAND"),
        (["works", "more"], 2, "Got unexpected extra argument (more)"),
        (["refused"], 1, str(BadSetting(name="--out", found="x", allowed="y"))),
        (["stopped"], 130, "\nStopped."),
        (["full"], 1, "The disk is full: what was asked for could not be written completely. Make room, then try again."),
    ],
)
def test_a_command_line_ends_with_a_status_and_says_why(
    words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_program(cli, "python -m that", words) == status
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert (err.strip() == said.strip()) or not words


def test_a_number_that_rounds_to_zero_has_no_minus() -> None:
    # The two files that are left out print bytes and seconds.
    commands = [
        path for path in sorted(Path(progress.__file__).parent.glob("*.py")) if path.name not in ("fetch.py", "progress.py")
    ]
    signed = re.compile(r"\{[^{}\"]*:(?![^}z]*z)[^}]*\.\d+f\}")
    found = [f"{path.name}: {each}" for path in commands for each in signed.findall(path.read_text(encoding="utf-8"))]
    assert not found, f"-0.0001 is printed as “-0.00” without a z in the form: {found}"
