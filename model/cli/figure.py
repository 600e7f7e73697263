"""`--figure` of `run`: hands the trace to `python -m viz figure`, which draws it. Nothing here imports what draws.

The two programs meet at the trace file and at the names of the options, as two strangers would: docs/figures.md lists them.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from model.errors import BadSetting
from model.trace import serialization
from model.trace.types import Trace

ROOT = Path(__file__).parents[2]

OPTIONS = (
    click.option("--figure", type=click.Path(path_type=Path), help="draws one picture of the run for print: *.svg, *.pdf or *.png"),
    click.option("--site", help="the attention site of the figure: stack.pass.layer.kind  [default: the last cross-attention]"),
    click.option("--head", type=int, default=0, show_default=True, help="the head of the figure, counted from 0"),
    click.option(
        "--figure-set",
        multiple=True,
        metavar="NAME=VALUE",
        help="an option of `python -m viz figure`, such as picture=lines or width=174; repeatable",
    ),
)


def draws_a_figure(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of a figure to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def draw(trace: Trace, figure: Path, site: str | None, head: int, settings: tuple[str, ...]) -> str:
    """Draws a picture of a trace in another process and returns the caption that it prints.

    Raises:
        BadSetting: a setting is not NAME=VALUE.
        ClickException: the picture could not be drawn; its sentence is that of the other process.
    """
    options = [f"--out={figure.resolve()}", f"--head={head}", *([f"--site={site}"] if site else []), *map(_option, settings)]
    return made_by_viz("figure", trace, options)


def made_by_viz(what: str, trace: Trace, options: list[str]) -> str:
    """Runs a command of `python -m viz` on a trace, in another process, and returns what it prints.

    Raises:
        ClickException: the command failed; its sentence is that of the other process.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.trace.safetensors"
        path.write_bytes(serialization.to_bytes(serialization.written_out(trace)))
        command: list[Any] = [sys.executable, "-m", "viz", what, path, *options]
        done = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise click.ClickException(done.stderr.strip())
    if done.stderr:
        click.echo(done.stderr.rstrip(), err=True)
    return done.stdout.strip()


def _environment() -> dict[str, str]:
    """The environment, with output in UTF-8: sentences have characters of all languages."""
    return os.environ | {"PYTHONIOENCODING": "utf-8"}


def _option(setting: str) -> str:
    name, sign, value = setting.partition("=")
    if not sign or not name:
        raise BadSetting(name="--figure-set", found=setting, allowed="NAME=VALUE, such as width=174")
    flags = {("title", "no"): "--no-title", ("labels", "no"): "--no-labels"}
    return flags.get((name, value), f"--{name}={value}")
