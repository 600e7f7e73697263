"""The panels of attention of today: latents, linear attention, a head in tiles, masks of layers, and attention sinks."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from model.engine.api import Run
from model.measures.of_run import weight_on
from model.requests.request import KEEP
from model.trace.types import Array, Attention
from viz.canvas.scenes import matrix
from viz.canvas.wire import strings
from viz.canvas.wire.transport import changed
from viz.features.modern_attention import flash_attention, latents, linear_attention, mask_kinds
from viz.i18n.translate import _
from viz.labels import alt_text, tokens
from viz.metrics import heads
from viz.panels import NotDrawable, Panel, Scene, Table
from viz.session.state import Page, with_trace
from viz.views.mask_panels import of_mask

MOST_LATENTS = 6
"""Tokens whose latents are drawn: both pictures have room in a window of 1024×768."""

LONGEST = 64
"""Most queries and keys of a head whose linear map, or whose tiles, are drawn."""

TILE = 4
"""Queries and keys of a tile: as small as the sentences of a lecture."""


def of_latents(page: Page) -> Iterator[Panel]:
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
    for name, title, note, table, across in (
        ("kept", kept, cut, found.kept, _("numbers that are kept")),
        ("made", made, "", found.made.reshape(len(found.made), -1), _("key and value of head 1, then of the other heads")),
    ):
        columns = [str(place + 1) for place in range(table.shape[1])]
        yield Panel(name, title, Scene("Cells", matrix.numbers(table[: len(rows)], rows, columns, (down, across))), note)


def of_linear(page: Page) -> Iterator[Panel]:
    """The map of the selected head, and the one of linear attention for the same queries and keys.

    Raises:
        NotDrawable: the run recorded no queries and keys, or is too long.
    """
    trace = page.engine.ask(Run(page.view.request(keep=("qkv",))))
    own, head = trace.at(page.attention.site), page.head
    if own.q is None or own.k is None or max(own.mask.shape) > LONGEST:
        raise NotDrawable(_("No numbers for this stage: this run did not record them."))
    instead = linear_attention.weights(own.q[head], own.k[head], own.mask)
    rows, keys, name = tokens.queries(trace, own), tokens.keys(trace, own), tokens.head_name(trace, own.site, head)
    axes = tokens.query_axis(trace, own.site), tokens.key_axis(trace, own.site)
    for panel, title, weights in (
        ("softmax", _("{head}: softmax, as in this run", head=name), own.weights[head]),
        ("linear", _("{head}: linear attention", head=name), instead),
    ):
        shown = np.where(own.mask, weights, np.nan)
        yield Panel(panel, title, Scene("Cells", matrix.numbers(shown, rows, keys, axes, "weights")), width="half")


def of_tiles(page: Page) -> Iterator[Panel]:
    """The selected head in tiles up to the link's step, and the running maximum and sum of the rows of the last one.

    Raises:
        NotDrawable: the run recorded no scores, or is too long.
    """
    page = with_trace(page, page.engine.ask(Run(page.view.request(keep=KEEP))))
    trace, own, head = page.trace, page.attention, page.head
    if own.scores is None or own.v is None or own.context is None or max(own.mask.shape) > LONGEST:
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
    columns = {_("largest so far"): tile.largest, _("factor on the earlier sum"): tile.factor, _("sum of exponentials"): tile.total}
    frame = pd.DataFrame(columns, index=pd.Index([rows[place] for place in tile.queries], name=_("query")))
    gaps = {"step": step + 1, "steps": len(found.tiles), "difference": tokens.power_of_ten(difference)}
    title = _("Scores in tiles: tile {step} of {steps}", **gaps)
    if step + 1 == len(found.tiles):
        title = _("Tile {step} of {steps}: largest difference of a context {difference}", **gaps)
    edges = [tile.queries.start, tile.keys.start, tile.queries.stop, tile.keys.stop]
    value = {"value": strings.cells("scores")["value"]}
    scene = changed(matrix.numbers(scores, rows, keys, axes), value, frame=edges)
    yield Panel("tiles", title, Scene("Cells", scene), width="half")
    yield Panel("sums", "", Table(frame), width="half")


def of_kinds(page: Page) -> Iterator[Panel]:
    """The mask of the site, and a table of the masks of all layers of its stack."""
    own, layers = page.attention, page.trace.of(page.attention.site.stack, "self")
    yield of_mask(page.trace, own, own.mask, ("mask", _("The mask of this attention layer")))
    yield Panel("kinds", _("The mask of each layer"), Table(mask_kinds.table(layers).iloc[:, :1]), mask_kinds.reaches(layers))


def of_sinks(page: Page) -> Iterator[Panel]:
    """The first token's share in every head, or, of a model with learned sinks, the selected head with its sink as a column.

    Raises:
        NotDrawable: the site is no self-attention, or layers differ in their heads.
    """
    layers = page.trace.of(page.attention.site.stack, "self")
    if len({own.heads for own in layers}) > 1 or page.attention not in layers:
        raise NotDrawable(_("This run contains no attention, so there is nothing to show here."))
    lacks = [heads.sink_shares(own.weights, own.mask) for own in layers]
    if not any(lack.any() for lack in lacks):
        shares = np.array([weight_on(page.trace, own, [0]) for own in layers])
        note = strings.axes(_("head"), _("layer"))
        yield Panel("first", _("The first token’s share, layer by layer"), of_heads(shares), note)
        return
    yield with_sink(page, page.attention, page.attention.weights[page.head], lacks[layers.index(page.attention)][page.head])
    means = np.array([each.mean(axis=1) for each in lacks])
    yield Panel("sink", _("Learned sinks"), of_heads(means), strings.axes(_("head"), _("layer")))


def with_sink(page: Page, own: Attention, weights: Array, lack: Array) -> Panel:
    """A head with its learned sink as a column of its own.

    Args:
        weights: [query, key].
        lack: [query], the share of the sink.
    """
    shown = np.concatenate([np.where(own.mask, weights, np.nan), lack[:, None]], axis=1)
    rows, keys = tokens.queries(page.trace, own), [*tokens.keys(page.trace, own), _("sink")]
    axes = tokens.query_axis(page.trace, own.site), tokens.key_axis(page.trace, own.site)
    title = _("{head}: its sink is the last column", head=tokens.head_name(page.trace, own.site, page.head))
    told = matrix.Told(title, alt_text.table(weights, axes[1]), strings.axes(*axes))
    return Panel("learned", title, Scene("Cells", matrix.numbers(shown, rows, keys, axes, "weights", told)))


def of_heads(shares: Array) -> Scene:
    """Cells of numbers [layer, head], layers from left to right."""
    names, layers = (tuple(str(index + 1) for index in range(size)) for size in shares.T.shape)
    told = matrix.Told("", alt_text.table(shares, _("heads")), square=True)
    return Scene("Cells", matrix.numbers(shares.T, names, layers, (_("head"), _("layer")), "weights", told))
