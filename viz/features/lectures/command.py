"""`python -m model lecture`: works with lecture files."""

import sys
from pathlib import Path

import click


@click.group()
def lecture() -> None:
    """Works with lectures (docs/lectures.md)."""


@lecture.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Checks lectures: every link, head and token of FILES, and every claim against the real run.

    Prints each problem with its line; the exit status is 1 if there is any.
    """
    from viz.features.lectures.presenter.check import check_files  # draws all pages: `--help` comes sooner without it

    sys.exit(check_files(files))
