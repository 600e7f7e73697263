"""`--figure` and `--archive` of `run`: they hand the trace to the program's commands `figure` and `archive`.

Nothing here imports what draws. Both sides meet at the trace file and at the names of the options, which docs/figures.md lists.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from model.checkpoints import loader
from model.engine.local import CHECKPOINTS
from model.errors import BadSetting
from model.trace import serialization
from model.trace.types import Trace

CARD = "CARD.md"

OPTIONS = (
    click.option(
        "--archive",
        type=click.Path(path_type=Path),
        help="puts everything of the run into one zip: trace, figures, tables, link, model card, request, notebook",
    ),
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


def draws(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of an archive and a figure to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def save(trace: Trace, archive: Path, site: str | None, head: int) -> None:
    """Writes the archive of a run; `site` and `head` are what its pictures show first.

    Raises:
        HeadlightError, ClickException: it could not be made.
    """
    card = loader.locate(str(trace.request["model"]), CHECKPOINTS) / CARD
    _hand_over("archive", trace, archive, site, head, [f"--card={card}"] if card.is_file() else [])


def draw(trace: Trace, figure: Path, site: str | None, head: int, settings: tuple[str, ...]) -> None:
    """Draws a picture of a trace and prints its caption.

    Raises:
        BadSetting: a setting is not NAME=VALUE.
        HeadlightError, ClickException: the picture could not be drawn.
    """
    flags = {"title=no": "--no-title", "labels=no": "--no-labels"}
    for setting in settings:
        if setting.find("=") < 1:
            raise BadSetting(name="--figure-set", found=setting, allowed="NAME=VALUE, such as width=174")
    _hand_over("figure", trace, figure, site, head, [flags.get(setting, f"--{setting}") for setting in settings])


def _hand_over(what: str, trace: Trace, out: Path, site: str | None, head: int, options: list[str]) -> None:
    """Runs another command of the program that is running, on a file of the trace."""
    program = click.get_current_context().find_root()
    assert isinstance(program.command, click.Group)
    command = program.command.get_command(program, what)
    if command is None:
        raise click.ClickException(f"There is no command {what}: the feature that draws for print was taken out of this copy.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.trace.safetensors"
        path.write_bytes(serialization.to_bytes(serialization.written_out(trace)))
        given = [str(path), f"--out={out}", f"--head={head}", *([f"--site={site}"] if site else []), *options]
        command.main(given, prog_name=what, standalone_mode=False)
