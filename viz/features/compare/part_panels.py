"""The panels of the parts of Compare: both outputs, both overviews, what changed, one head in both runs, and all heads in order."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from model.trace.types import Array, Attention, Site, Trace
from viz.canvas import standalone
from viz.features.compare import difference_scene, notes, output_panels, run_difference, runs
from viz.features.compare.figures import difference
from viz.features.compare.notes import Compared
from viz.features.compare.run_difference import Change
from viz.figures import heatmap
from viz.i18n.translate import _, titled
from viz.labels import alt_text, tokens
from viz.panels import NotDrawable, Panel, Plot, Scene, Table, Text
from viz.session.state import Page
from viz.url.view_state import ViewState


def compared(page: Page, names: tuple[str, str]) -> Compared:
    """The runs of both sides of a view, and what changed between them.

    Args:
        names: what the sides are called.

    Raises:
        NotDrawable: side B cannot run.
    """
    both = runs.runs(page)
    if isinstance(both, str):
        raise NotDrawable(_("Side B cannot be run: {reason}", reason=both))
    return Compared(both, names, *run_difference.changes(both.first, both.second))


def focused(page: Page, sides: Compared, chosen: bool) -> Page:
    """The page on the run of side A, with the head that changed most unless one is chosen."""
    page = replace(page, trace=sides.runs.first, attention=sides.runs.first.at(page.attention.site))
    if chosen or not sides.changed:
        return page
    site, head = run_difference.most_changed(sides.found)
    return replace(page, attention=page.trace.at(site), head=head)


def titles(names: tuple[str, str]) -> tuple[str, str]:
    """Titles of the sides: which one it is, and what it has that the other has not."""
    return _("Side A: {name}", name=names[0]), _("Side B: {name}", name=names[1])


def selection_in(page: Page, trace: Trace) -> tuple[Site, int]:
    """The selected head where a run has it, else the first head of the run."""
    has_head = page.attention.site in trace.attention and page.head < trace.at(page.attention.site).heads
    return (page.attention.site, page.head) if has_head else (next(iter(trace.attention)), 0)


def of_changes(page: Page, sides: Compared) -> Panel:
    """The overview of the differences, without kinds of attention that did not change, and sentences on what is left out.

    Raises:
        NotDrawable: nothing changed.
    """
    if not sides.changed:
        raise NotDrawable(" ".join(notes.notes(sides)))
    return of_differences(page.trace, sides.second, run_difference.changed_kinds(sides.found)[0], (page.attention.site, page.head))


def of_differences(first: Trace, second: Trace, changes: Mapping[Site, Change], selection: tuple[Site, int]) -> Panel:
    """The overview of the differences of some sites.

    Args:
        selection: the head in the frame.
    """
    site, head = selection
    content = Scene("Atlas", difference_scene.scene(first, second, changes, site, head))
    framed = {"site": str(site), "head": head}
    return Panel("changes", _("Changes of the weights"), content, selected=framed, paper=tuple)


def of_head(page: Page, sides: Compared) -> Iterator[Panel]:
    """The selected head on both sides."""
    yield _map(page, page.trace, page.attention, _("Side A"), "first")
    attention = sides.second.attention.get(page.attention.site)
    if attention is None or page.head >= attention.heads:
        yield Panel("second", "", Text(()), _("Side B has no such head."), width="half")
    else:
        yield _map(page, sides.second, attention, _("Side B"), "second")


def _map(page: Page, trace: Trace, attention: Attention, title: str, name: str) -> Panel:
    query = page.view.query if name == "first" else -1
    alt = titled(title, alt_text.head(trace, attention, page.head))
    named = _("{what}: {value}", what=title, value=tokens.site(attention.site, page.head))
    plot = Plot(lambda dark: heatmap.head_weights(trace, attention, page.head, dark, query), alt, f"map-{name}", named)
    return Panel(name, title, plot, width="half")


def of_difference(page: Page, sides: Compared) -> Panel:
    """The difference of the selected head, or why there is none."""
    title, change = _("B − A"), sides.found.get(page.attention.site)
    if change is None or page.head >= change.heads:
        return Panel("difference", title, Text(()), _("This head cannot be compared; see the reason above."), width="half")
    runs_of_sides = (page.trace, change.first), (sides.second, change.second)
    labels = tokens.compared(*runs_of_sides, change.rows, change.keys, longest=None)
    alt = titled(title, alt_text.changes(*labels, change.difference(page.head)))
    named = _("{what}: {value}", what=title, value=tokens.site(page.attention.site, page.head))
    rows, keys, rounding, digits = change.rows, change.keys, change.rounding, page.digits(4)
    plot = Plot(
        lambda dark: difference(*runs_of_sides, page.head, rows, keys, dark, rounding, digits), alt, "map-difference", named
    )
    return Panel("difference", title, plot, _moved(change.by_row[page.head]), width="half")


def _moved(by_row: Array) -> str:
    """How much of each row's weight moved on average; empty where no row can choose."""
    counted = by_row[~np.isnan(by_row)]
    if not len(counted):
        return ""
    fields = {"share": counted.mean(), "rows": len(counted)}
    return _("On average, {share:.1%} of each row’s weight moved (rows compared: {rows}).", **fields)


def of_ranking(page: Page, sides: Compared) -> Panel:
    """All heads that can be compared, the most changed first."""
    queries = {site: tokens.queries(page.trace, change.first, longest=None) for site, change in sides.found.items()}
    table = run_difference.table(sides.found, queries)
    names = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head"), "row": _("most changed row")}
    numbers = {"moved": _("weight moved"), "largest": _("weight moved in that row"), "cell": _("largest change of one weight")}
    content = Table(table, decimals=4, titles=names | numbers | {"rows": _("rows")}, named=False)
    return Panel("ranking", _("Heads, most changed first"), content)


def _outputs(page: Page, sides: Compared) -> Iterator[Panel]:
    yield from output_panels.of_strips(page, sides.runs, sides.names)
    yield from output_panels.of_probabilities(page, sides.runs, sides.names)


def _overviews(page: Page, sides: Compared) -> Iterator[Panel]:
    for name, title, trace in zip(("first", "second"), sides.names, (page.trace, sides.second), strict=True):
        query = page.view.query if name == "first" else -1
        atlas = Scene("Atlas", *standalone.atlas_with_parts(trace, *selection_in(page, trace), query))
        yield Panel(name, title, atlas, width="half")


def _changes(page: Page, sides: Compared) -> Iterator[Panel]:
    yield replace(of_changes(page, sides), words="\n".join(notes.notes(sides)), fills=True)


def _selected(page: Page, sides: Compared) -> Iterator[Panel]:
    yield from of_head(page, sides)
    yield of_difference(page, sides)


def _ranking(page: Page, sides: Compared) -> Iterator[Panel]:
    if not sides.found:
        raise NotDrawable(" ".join(notes.notes(sides)))
    yield of_ranking(page, sides)


def _part(panels_of: Callable[[Page, Compared], Iterator[Panel]]) -> Callable[[Page, ViewState], Iterator[Panel]]:
    """A part of the page from a function of both runs."""

    def panels(page: Page, link: ViewState) -> Iterator[Panel]:
        sides = compared(page, (_("Side A"), _("Side B")))
        return panels_of(focused(page, sides, bool(link.site)), sides)

    return panels


PARTS: Mapping[str, Callable[[Page, ViewState], Iterator[Panel]]] = {
    "outputs": _part(_outputs),
    "sides": _part(_overviews),
    "changes": _part(_changes),
    "selected": _part(_selected),
    "ranking": _part(_ranking),
}
"""As `viz.feature.FeaturePage.parts`."""
