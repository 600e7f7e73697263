"""`python -m model lecture`: checks lectures. The check reads links of the app, so it runs in a process of `viz`."""

import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]


@click.group()
def lecture() -> None:
    """Works with lectures (docs/lectures.md)."""


@lecture.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Checks lectures: every link, head and token of FILES, and every claim against the real run.

    Prints each problem with its line; the exit status is 1 if there is any.
    """
    command = [sys.executable, "-m", "viz.lectures.presenter", *(str(file.absolute()) for file in files)]
    sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)
