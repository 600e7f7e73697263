"""`--archive` of `run`: everything of the run in one zip, made by `python -m viz archive`. Nothing here imports what draws."""

from collections.abc import Callable
from pathlib import Path

import click

from model.checkpoints import loader
from model.cli.figure import made_by_viz
from model.engine.local import CHECKPOINTS
from model.trace.types import Trace

CARD = "CARD.md"

OPTION = click.option(
    "--archive",
    type=click.Path(path_type=Path),
    help="puts everything of the run into one zip: trace, figures, tables, link, model card, request, notebook",
)


def makes_an_archive(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the option to a command."""
    return OPTION(command)


def save(trace: Trace, archive: Path, site: str | None, head: int) -> None:
    """Writes the archive of a run.

    Args:
        site, head: what its pictures show first.

    Raises:
        ClickException: it could not be made; its sentence is that of the other process.
    """
    card = loader.locate(str(trace.request["model"]), CHECKPOINTS) / CARD
    options = [f"--out={archive.resolve()}", f"--head={head}", *([f"--site={site}"] if site else [])]
    made_by_viz("archive", trace, [*options, *([f"--card={card}"] if card.is_file() else [])])
