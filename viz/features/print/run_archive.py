"""Everything of a run in one zip archive: trace, figures, tables, link, model card, request, and a notebook that draws it again.

Headlight opens the archive by its trace, wherever it opens traces (docs/open.md). Equal runs give equal archives.
"""

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import urlencode

import pandas as pd

from model.errors import HeadlightError, Phrase
from model.requests.inputs import Chat
from model.requests.request import RunRequest
from model.trace.trace_files import ARCHIVE
from model.trace.types import Attention, Site, Trace
from viz.canvas import standalone
from viz.export import tables
from viz.features.print import archive_notebook, writers
from viz.features.print.catalogue import Choice, standard_figures
from viz.features.print.options import ONE_COLUMN, TWO_COLUMNS, Options
from viz.i18n.translate import _, said
from viz.labels import tokens
from viz.metrics import heads
from viz.url import links, parsers
from viz.url.view_state import ViewState

MOST_CELLS = 2**17
"""Most weights of a run whose every head gets a table; of a larger run only the selected head does. The trace holds them all."""

MOST_SHAPES = 20_000
"""Most cells of a map that are drawn as shapes; those of a larger map are one image."""

_MADE = (1980, 1, 1, 0, 0, 0)  # the time that every file of an archive has, so that equal runs give equal archives


@dataclass(frozen=True)
class ArchivedCell:
    """The selection in a run: a site, one of its heads, and a query row, counted from 0 (-1: none)."""

    site: Site
    head: int = 0
    query: int = -1


@dataclass(frozen=True)
class About:
    """Facts that a trace does not hold.

    Attributes:
        link: address that shows the run again; empty: made from its request.
        card: the model card, as Markdown; empty: only what the trace says of its model.
    """

    link: str = ""
    card: str = ""


FigureMaker: TypeAlias = Callable[[Trace, ArchivedCell], Iterable[tuple[str, bytes]]]
"""Makes figures of a run: names of files and their bytes."""


def overview(trace: Trace, cell: ArchivedCell) -> Iterator[tuple[str, bytes]]:
    """All heads as a page of its own."""
    yield "overview.html", standalone.page(trace, cell.site, cell.head, cell.query)


def printed(trace: Trace, cell: ArchivedCell, endings: Sequence[str] = ("svg",)) -> Iterator[tuple[str, bytes]]:
    """The figures for print that the run has; a large map is a lossless image in it. What cannot be drawn is left out.

    Args:
        trace: the run.
        cell: what the figures show.
        endings: the kinds of files, of `files.WRITERS`: a file of each kind for each figure.
    """
    attention = trace.at(cell.site)
    cells = {"atlas": sum(attention_.heads * attention_.mask.size for attention_ in trace.attention.values())}
    for figure in standard_figures(trace, Choice(attention, cell.head, cell.query)):
        many = cells.get(figure.name, attention.mask.size) > MOST_SHAPES
        with suppress(HeadlightError):  # such as lines between too many tokens
            width = TWO_COLUMNS if figure.name == "atlas" else ONE_COLUMN
            sheet = figure.draw(Options(width=width, maps="image" if many else "vector"))
            yield from ((f"{figure.name}.{ending}", writers.WRITERS[ending](sheet)) for ending in endings)


FIGURES: tuple[FigureMaker, ...] = (overview, printed)
"""Makers of the figures of an archive; a new kind of figure is one more function here."""


def archive(trace: Trace, cell: ArchivedCell, about: About = About(), makers: tuple[FigureMaker, ...] = FIGURES) -> bytes:
    """The bytes of the archive.

    Args:
        trace: the run.
        cell: what the figures and the notebook show first.
        about: what the trace does not hold.
        makers: make the figures.

    Raises:
        UnknownSite, UnknownHead: the run has no such place.
    """
    trace.at(cell.site).head(cell.head)
    about = replace(about, link=about.link or link(trace))
    folder = tables.file_name(trace, ending="run").removesuffix(".run")
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as packed:
        for name, data in _files(trace, cell, about, makers):
            packed.writestr(zipfile.ZipInfo(f"{folder}/{name}", _MADE), data, zipfile.ZIP_DEFLATED)
    return box.getvalue()


def _files(trace: Trace, cell: ArchivedCell, about: About, makers: tuple[FigureMaker, ...]) -> Iterator[tuple[str, bytes]]:
    yield ARCHIVE, tables.trace_file(trace)
    for make in makers:
        yield from sorted((f"figures/{name}", data) for name, data in make(trace, cell))
    yield from ((f"tables/{name}", tables.csv(table)) for name, table in _tables(trace, cell))
    yield "model.md", _card(trace, about.card).encode()
    yield from ((f"sums/{name}.json", _json(sum_)) for name, sum_ in sorted(trace.sums.items()))
    if trace.request:
        yield "request.json", _json(trace.request)
    if about.link:
        yield "link.txt", f"{about.link}\n".encode()
    yield "notebook.ipynb", _json(archive_notebook.notebook(trace, cell.site, cell.head, about.link, trace.sums))
    yield "README.txt", _contents(trace).encode()


def link(trace: Trace) -> str:
    """The part of an address after the host that runs this again; empty where no link can say it, such as for typed ids."""
    if not trace.request:
        return ""
    try:
        request = RunRequest.from_json(trace.request)
    except HeadlightError:
        return ""
    if not isinstance(request.source, str | Chat) or not isinstance(request.target, str | None):
        return ""
    turns = request.source.turns if isinstance(request.source, Chat) else ()
    plain = parsers.PLAIN if "program" in (trace.model.get("spec") or {}) and "target" not in trace.tokens else ""
    view = ViewState(
        model=request.model,
        text=turns[-1].text if turns else str(request.source),
        chat=parsers.written_turns(turns[:-1]) if turns else plain,
        target=request.target or "",
        begin=",".join(map(str, request.begin)),
        edits="; ".join(map(str, request.edits)),
        settings=parsers.settings_text(dict(request.settings)),
        **vars(request.decoding),
    )
    return address(view)


def address(view: ViewState) -> str:
    """The part of an address after the host that shows a view on Explore."""
    return f"/explore?{urlencode(links.write(view))}"


def _tables(trace: Trace, cell: ArchivedCell) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables by file name: statistics of all heads, weights of heads, and the steps of a decode."""
    yield "heads.csv", heads.all_heads(trace)
    every = sum(attention.heads * attention.mask.size for attention in trace.attention.values()) <= MOST_CELLS
    for site, attention in trace.attention.items():
        for head in range(attention.heads):
            if every or (site, head) == (cell.site, cell.head):
                yield f"{site}-head-{head + 1}.csv", _weights(trace, attention, head)
    if trace.steps:
        yield "steps.csv", _steps(trace)


def _weights(trace: Trace, attention: Attention, head: int) -> pd.DataFrame:
    weights = attention.head(head)
    return tables.map_table(trace, attention, weights, range(weights.shape[1]))


def _steps(trace: Trace) -> pd.DataFrame:
    """One row for each candidate of each step, the chosen one marked."""
    rows = [
        {
            _("step"): step.index + 1,
            _("token"): tokens.plain(candidate.text),
            _("id"): candidate.id,
            _("log-probability"): candidate.log_probability,
            _("chosen"): candidate.id == step.chosen.id,
        }
        for step in trace.steps
        for candidate in dict.fromkeys((*step.candidates, step.chosen))
    ]
    return pd.DataFrame(rows).set_index(_("step"))


def _card(trace: Trace, card: str) -> str:
    """The model card: the given one, and what the trace says of its model."""
    facts = {name: value for name, value in trace.model.items() if name != "spec"}
    worded = {
        name: said(value) if isinstance(value, str | Phrase) else json.dumps(value, ensure_ascii=False, default=said)
        for name, value in facts.items()
    }
    lines = [f"- {name}: {value}" for name, value in worded.items()]
    spec = trace.model.get("spec")
    parts = ["# " + tokens.model(trace), *([card.strip()] if card.strip() else [])]
    parts += ["## " + _("What the trace says about the model"), "\n".join(lines)]
    parts += [f"```json\n{json.dumps(spec, indent=1)}\n```"] if spec else []
    return "\n\n".join(parts) + "\n"


def _json(values: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(values), ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _contents(trace: Trace) -> str:
    """The contents of the archive, in words."""
    sums = [_("sums/: a score and a logit as the sum of what wrote them, as JSON (docs/why.md of Headlight).")]
    lines = [
        _("A run of {title}, recorded by Headlight.", title=tokens.model(trace)),
        "",
        _("{name}: the whole run; the safetensors library is enough to read it (docs/trace.md of Headlight).", name=ARCHIVE),
        _("figures/: pictures. overview.html opens in any browser, also offline."),
        _("tables/: numbers as CSV."),
        *(sums if trace.sums else []),
        _("model.md: the model card. request.json: the run request. link.txt: the link to this view."),
        _("notebook.ipynb: opens the run and draws pictures; it needs numpy, safetensors and matplotlib."),
        "",
        _("To open it, drop this archive on the Checkpoint page, or run python -m model view ARCHIVE."),
    ]
    return "\n".join(lines) + "\n"
