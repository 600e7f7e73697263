"""Panels of what a decoder keeps and computes: its cache, costs over length, linear attention, and a head in tiles."""

from collections.abc import Iterator

import numpy as np

from model.attribution.costs import Measures, Sizes
from model.engine.api import Run
from model.spec.request import KEEP
from viz.canvas.scenes import matrix
from viz.canvas.wire.strings import cells as texts_of_cells
from viz.features.modern_attention import cache, flash_attention, latents, length, linear_attention
from viz.i18n.translate import _, _n, number
from viz.labels import tokens
from viz.lectures.presenter import panels, tables
from viz.lectures.presenter.explore_panels import PanelWithScene
from viz.lectures.presenter.headless_page import NotDrawable, with_trace
from viz.lectures.presenter.panels import Panel
from viz.session.state import Page

MOST_LATENTS = 6
"""Tokens whose latents are drawn: both pictures have room in a window of 1024×768."""

AHEAD = 2
"""Tokens after those of the run that the curve of the cache goes on for: what the next one adds is seen."""

TILE = 4
"""Queries and keys of a tile: as small as the sentences of a lecture."""


def sizes_of(page: Page) -> Sizes:
    """What the cost of the page's model follows from.

    Raises:
        NotDrawable: it keeps no cache, because it writes nothing.
        HeadlightError: it is not known.
    """
    if page.info.recorded or not page.trace.of("decoder", "self"):
        raise NotDrawable(_("It is not known here what this model keeps for each token."))
    return page.engine.ask(Measures(page.info.name, page.view.parsed_settings()))


def of_cache(page: Page) -> Iterator[PanelWithScene]:
    """The bytes that are kept after each token."""
    sizes, size = sizes_of(page), cache.bytes_of(page.trace)
    source = len(page.trace.tokens["source"]) if sizes.cross else 0
    count = page.trace.of("decoder", "self")[0].mask.shape[0]
    across = range(1, count + AHEAD + 1)
    lines = cache.kept_lines(sizes, size, across, source)
    kept = _in_bytes(lines[0].values[count - 1])
    mark = count, lines[0].values[count - 1]
    scene = tables.chart(across, lines, (_("tokens read"), _("bytes")), mark=mark)
    yield Panel("Chart", "cache", _("The cache"), _("{bytes} after token {count}.", count=count, bytes=kept)), scene


def _in_bytes(count: float) -> str:
    """A number of bytes as questions and answers write it."""
    return _n("{count} byte", "{count} bytes", round(count), count=number(count, ",.0f"))


def of_operations(page: Page) -> Iterator[PanelWithScene]:
    """The operations of each step, with the cache and without.

    Raises:
        NotDrawable: nothing was generated.
    """
    sizes = sizes_of(page)
    if not page.trace.steps:
        raise NotDrawable(_("This run generated nothing."))
    lengths, cached, whole = cache.decoded(page, sizes)
    axes, lines = (_("tokens read"), _("operations of this step")), cache.operation_lines(cached, whole)
    gaps = {"cached": number(sum(cached) / 1e6, ".2f"), "whole": number(sum(whole) / 1e6, ".2f")}
    gaps |= {"times": number(sum(whole) / sum(cached), ".1f")}
    times = _("All steps together: {cached} million with the cache, {whole} million without, more by a factor of {times}.", **gaps)
    yield Panel("Chart", "operations", _("Operations of each step"), times), tables.chart(lengths, lines, axes)


def of_ways(page: Page) -> Iterator[PanelWithScene]:
    """The ways to keep a token, and what each keeps."""
    sizes = sizes_of(page)
    found = cache.ways(sizes.layers[0])
    most = max(count for _name, count in found)
    tokens_read, each = page.trace.of("decoder", "self")[0].mask.shape[0], len(sizes.layers) * cache.bytes_of(page.trace)
    rows = [[name, str(count), number(count * each * tokens_read, ",.0f")] for name, count in found]
    shades = np.array([[count / most] * 2 for _name, count in found])
    note = _("How many numbers one layer keeps for one token, and how many bytes all layers keep for all tokens of this run:")
    columns = [_("way"), _("numbers"), _("bytes of this run")]
    yield Panel("Table", "ways", "", note), tables.table(columns, rows, 0, shades)


def of_latents(page: Page) -> Iterator[PanelWithScene]:
    """What the chosen layer keeps of each token, and the keys and values that its heads make of it.

    Raises:
        NotDrawable: it has no latents, or the run did not record them.
        HeadlightError: the run is not possible.
    """
    trace, found = latents.recorded(page)
    if found is None:
        raise NotDrawable(_("No numbers for this stage: this run did not record them."))
    rows, down = tokens.keys(trace, page.attention)[:MOST_LATENTS], tokens.key_axis(trace, page.attention.site)
    kept, made = latents.titles(page)
    cut = _("Only the first tokens are drawn.") if len(found.kept) > len(rows) else ""
    for scene, title, note, table, across in (
        ("kept", kept, cut, found.kept, _("numbers that are kept")),
        ("made", made, "", found.made.reshape(len(found.made), -1), _("key and value of head 1, then of the other heads")),
    ):
        names = [str(place + 1) for place in range(table.shape[1])]
        yield Panel("Cells", scene, title, note), matrix.numbers(table[: len(rows)], rows, names, (down, across))


def of_length(page: Page) -> Iterator[PanelWithScene]:
    """Operations for texts of 1,000 to 1,000,000 tokens."""
    sizes, axes = sizes_of(page), (_("tokens of the text"), _("operations to read it"))
    scene = tables.chart(length.LENGTHS, length.operation_lines(sizes), axes, (True, True))
    yield Panel("Chart", "operations", _("Operations over length"), length.about(sizes)), scene


def of_bytes(page: Page) -> Iterator[PanelWithScene]:
    """Bytes for texts of 1,000 to 1,000,000 tokens."""
    lines = length.byte_lines(sizes_of(page), cache.bytes_of(page.trace))
    scene = tables.chart(length.LENGTHS, lines, (_("tokens of the text"), _("bytes")), (True, True))
    yield Panel("Chart", "bytes", _("Bytes over length")), scene


def of_linear(page: Page) -> Iterator[PanelWithScene]:
    """The map of the selected head, and the one of linear attention for the same queries and keys.

    Raises:
        NotDrawable: the run recorded no queries and keys, or is too long.
    """
    trace = page.engine.ask(Run(page.view.request(keep=("qkv",))))
    own, head = trace.at(page.attention.site), page.head
    if own.q is None or own.k is None or max(own.mask.shape) > panels.LONGEST:
        raise NotDrawable(_("No numbers for this stage: this run did not record them."))
    instead = linear_attention.weights(own.q[head], own.k[head], own.mask)
    rows, keys, name = tokens.queries(trace, own), tokens.keys(trace, own), tokens.head_name(trace, own.site, head)
    axes = tokens.query_axis(trace, own.site), tokens.key_axis(trace, own.site)
    for scene, title, weights in (
        ("softmax", _("{head}: softmax, as in this run", head=name), own.weights[head]),
        ("linear", _("{head}: linear attention", head=name), instead),
    ):
        shown = np.where(own.mask, weights, np.nan)
        yield Panel("Cells", scene, title, half=True), matrix.numbers(shown, rows, keys, axes, "weights")


def of_tiles(page: Page) -> Iterator[PanelWithScene]:
    """The selected head in tiles up to the link's step, and the running maximum and sum of the rows of the last one.

    Raises:
        NotDrawable: the run recorded no scores, or is too long.
    """
    page = with_trace(page, page.engine.ask(Run(page.view.request(keep=KEEP))))
    trace, own, head = page.trace, page.attention, page.head
    if own.scores is None or own.v is None or own.context is None or max(own.mask.shape) > panels.LONGEST:
        raise NotDrawable(_("No numbers for this stage: this run did not record them."))
    found = flash_attention.attend(own.scores[head], own.mask, own.v[head], TILE)
    step = min(max(page.view.step, 0), len(found.tiles) - 1)
    tile = found.tiles[step]
    met = np.zeros(own.mask.shape, bool)
    for each in found.tiles[: step + 1]:
        met[each.queries.start : each.queries.stop, each.keys.start : each.keys.stop] = True
    rows, keys = tokens.queries(trace, own), tokens.keys(trace, own)
    axes = tokens.query_axis(trace, own.site), tokens.key_axis(trace, own.site)
    scores = np.where(own.mask & met, own.scores[head], np.nan)
    difference = float(np.abs(found.context - own.context[head]).max())
    columns = [_("query"), _("largest so far"), _("factor on the earlier sum"), _("sum of exponentials")]
    table = [
        [rows[place], *(number(float(value), ".3f") for value in numbers)]
        for place, *numbers in zip(tile.queries, tile.largest, tile.factor, tile.total, strict=True)
    ]
    gaps = {"step": step + 1, "steps": len(found.tiles), "difference": tokens.power_of_ten(difference)}
    title = _("Scores in tiles: tile {step} of {steps}", **gaps)
    if step + 1 == len(found.tiles):
        title = _("Tile {step} of {steps}: largest difference of a context {difference}", **gaps)
    frame = [tile.queries.start, tile.keys.start, tile.queries.stop, tile.keys.stop]
    value = {"value": texts_of_cells("scores")["value"]}
    scene = panels.changed(matrix.numbers(scores, rows, keys, axes), value, frame=frame)
    yield Panel("Cells", "tiles", title, half=True), scene
    yield Panel("Table", "sums", half=True), tables.table(columns, table)
