"""`python -m model figure` and `archive`: a picture of a trace file for print, and all of it in one zip."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click

from model.cli.program import write_output
from model.errors import BadSetting, WireError
from model.feature import modules_of_traces
from model.trace.serialization import from_bytes
from model.trace.types import Attention, Site, Trace
from viz.features.print.catalogue import Choice, caption, figure_called
from viz.features.print.options import ONE_COLUMN, Colours, Maps, Options
from viz.features.print.run_archive import About, ArchivedCell, overview, printed
from viz.features.print.run_archive import archive as packed
from viz.features.print.writers import WRITERS, written


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="the file to write: *.svg, *.pdf or *.png")
@click.option("--picture", default="head", show_default=True, help="head, lines, atlas, mask, positions-encoder, tree, …")
@click.option("--site", help="the attention site: stack.pass.layer.kind  [default: the last cross-attention]")
@click.option("--head", type=int, default=0, show_default=True, help="the head, counted from 0")
@click.option("--query", type=int, default=-1, help="a query row that stands out, counted from 0")
@click.option("--key", type=int, default=-1, help="the key of the picture `arithmetic`, counted from 0")
@click.option("--width", type=float, default=ONE_COLUMN, show_default=True, help="millimeters; 85: one column, 174: two columns")
@click.option("--font-size", type=float, default=7.0, show_default=True, help="points")
@click.option("--colors", type=click.Choice(get_args(Colours)), default="light", show_default=True, help="the scheme")
@click.option("--maps", type=click.Choice(get_args(Maps)), default="vector", show_default=True, help="what cells are drawn as")
@click.option("--no-title", is_flag=True, help="without the title")
@click.option("--no-labels", is_flag=True, help="without the names of tokens")
@click.option("--link", default="", help="address that the printed caption ends with")
def figure(
    trace: Path,
    out: Path,
    picture: str,
    site: str | None,
    head: int,
    query: int,
    key: int,
    width: float,
    font_size: float,
    colors: Colours,
    maps: Maps,
    no_title: bool,
    no_labels: bool,
    link: str,
) -> None:
    """Writes a picture of TRACE, a trace file, for print, and prints a caption for it."""
    options = Options(width, font_size, not no_title, colors, not no_labels, maps)
    recorded = _read(trace)
    drawn = figure_called(recorded, Choice(_chosen(recorded, site), head, query, key), picture)
    sheet = drawn.draw(options)
    write_output(out, written(sheet, out))
    click.echo(caption(recorded, drawn.title, link))
    for note in sheet.notes:
        click.echo(f"Note: {note}", err=True)


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="the archive to write: *.zip")
@click.option("--site", help="the site that its pictures show first  [default: the last cross-attention]")
@click.option("--head", type=int, default=0, show_default=True, help="the head that they show first, counted from 0")
@click.option("--figures", type=click.Choice(tuple(WRITERS)), multiple=True, default=("svg",), help="kind of figures; repeatable")
@click.option("--card", type=click.Path(path_type=Path, exists=True), help="the model card, a Markdown file")
@click.option(
    "--sum",
    "sums",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    help="what `why --json` or `writes --json` of `python -m model` printed about this run; repeatable",
)
@click.option("--link", default="", help="address that shows the run again  [default: made from its request]")
def archive(
    trace: Path,
    out: Path,
    site: str | None,
    head: int,
    figures: tuple[str, ...],
    card: Path | None,
    sums: tuple[Path, ...],
    link: str,
) -> None:
    """Writes everything of TRACE into one archive: trace, figures, tables, link, model card, request, notebook, and sums."""
    recorded = _read(trace)
    recorded = replace(recorded, sums={**recorded.sums, **dict(map(_sum, sums))})
    about = About(link, card.read_text(encoding="utf-8") if card else "")
    makers = (overview, partial(printed, endings=tuple(dict.fromkeys(figures))))
    write_output(out, packed(recorded, ArchivedCell(_chosen(recorded, site).site, head), about, makers))


def _sum(path: Path) -> tuple[str, dict[str, Any]]:
    """The name of a sum and its JSON values.

    Raises:
        BadSetting: the file holds none.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        name = "why" if "matrix" in values else "writes"
        readers = {name: read for module in modules_of_traces() for name, read in module.SAVED.items()}
        readers[name](values)
    except (OSError, KeyError, ValueError, TypeError, WireError) as error:
        raise BadSetting(name="--sum", found=str(path), allowed="what `why --json` or `writes --json` printed") from error
    return name, values


def _chosen(trace: Trace, site: str | None) -> Attention:
    """A site by its text form; without one, the last cross-attention, or else the last site."""
    return trace.at(Site.parse(site)) if site else trace.last_cross()


def _read(path: Path) -> Trace:
    try:
        return from_bytes(path.read_bytes())
    except OSError as error:
        raise BadSetting(name="TRACE", found=str(path), allowed=f"a file that can be read ({error.strerror})") from error
