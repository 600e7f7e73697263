"""Computes the reading of the selected site for Explore; page.py draws and explains it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from model.engine.api import Run, Tensors
from model.errors import HeadlightError
from model.measures.rows import entropies
from model.requests.request import RunRequest
from model.trace.rollout import can_be_rolled_out, rollout
from model.trace.stages import Stage
from model.trace.types import Array, Attention, Site
from viz.canvas.scenes import attention, overlay
from viz.canvas.scenes.attention import ReadingScene
from viz.canvas.wire import overviews
from viz.export import tables
from viz.feature import features
from viz.i18n.translate import _, _n, error_message
from viz.labels import tokens
from viz.labels.images import hidden_positions
from viz.metrics import aggregation
from viz.metrics.catalogue import Reading, catalogue
from viz.panels import needs_network
from viz.session.state import Page

LONGEST = 256
"""Most tokens on a side of a heatmap here, which labels every token. The atlas opens heads of any size."""


WEIGHTS = ("head", "writes")
"""Readings whose map is the weights of the selected head."""


@dataclass(frozen=True, eq=False)
class SiteReading:
    """A reading of one site, ready to be drawn, explained and exported.

    Attributes:
        reading: its description.
        values: [query, key shown], or [query] for one number per row.
        probabilities: whether the rows sum to 1, so that the color scale goes from 0 to 1.
        quantity: name of the numbers.
        keys: [key shown], indices of the site's keys.
        notes: sentences about this picture.
        most: [query], the largest possible entropy; only for the entropy.
    """

    reading: Reading
    values: Array
    probabilities: bool
    quantity: str
    keys: Array
    notes: tuple[str, ...] = ()
    most: Array | None = None


def of_page(page: Page) -> SiteReading:
    """The reading that the view asks for; if it is not available, the raw weights and a note that says why."""
    name, attention = page.view.reading, page.attention
    site_reading = _COMPUTED[name](page) if name in _COMPUTED else _weights(page)
    if isinstance(site_reading, str):  # why there is none
        site_reading = replace(_weights(page), notes=(site_reading, _("Showing the weights of the selected head instead.")))
    match "none" if site_reading.reading.name == "writes" else hides(page):
        case "special":
            special = page.trace.tokens[attention.key_tokens].special[: len(site_reading.keys)]
            site_reading = _without_special(site_reading, np.asarray(special, bool))
        case "first":
            site_reading = _without_first(page, site_reading)
    # The entropy is that of the rows as they are drawn: without the keys that the page leaves out.
    return _entropy(page, site_reading) if name == "entropy" else site_reading


def hides(page: Page) -> str:
    """What the page leaves out, one of the values of the parameter `hide`."""
    return overviews.leaves_out(page.view.hide, page.trace)


def with_values(page: Page) -> Attention | str:
    """The selected site from a run that records values, requested only here; a sentence if there is none."""
    try:
        attention = page.engine.ask(Run(page.view.request(keep=("qkv",)))).at(page.attention.site)
    except HeadlightError as error:
        return error_message(error)
    return attention if attention.v is not None else _("This run contains no value vectors.")


def fits(page: Page) -> bool:
    """Whether the selected site has at most LONGEST queries and keys."""
    return bool(max(page.attention.mask.shape) <= LONGEST)


def is_raw(page: Page, site_reading: SiteReading) -> bool:
    """Whether the map is the weights of the selected head as they ran, all keys included."""
    return site_reading.reading.name in WEIGHTS and len(site_reading.keys) == page.attention.mask.shape[1]


def title(page: Page, site_reading: SiteReading) -> str:
    """Title of the picture: the selected head for raw weights; for derived numbers the reading's name first."""
    whose = tokens.site(page.attention.site, page.head if site_reading.reading.of_head else None)
    name = whose if site_reading.reading.name == "head" else _("{reading} · {site}", reading=site_reading.reading.title, site=whose)
    left = hides(page) == "first" and len(site_reading.keys) < page.attention.mask.shape[1]
    return _("{title}, without the first token", title=name) if left else name


def file_parts(page: Page, site_reading: SiteReading) -> tuple[str, ...]:
    """Parts of the name of a file with this reading."""
    head = (f"head-{page.head + 1}",) if site_reading.reading.of_head else ()
    reading = () if site_reading.reading.name == "head" else (site_reading.reading.name,)
    hidden = (f"without-{hides(page)}",) if len(site_reading.keys) < page.attention.weights.shape[2] else ()
    return (str(page.attention.site), *head, *reading, *hidden)


def _weights(page: Page) -> SiteReading:
    return _map(page, "head", page.attention.head(page.head), probabilities=True)


def _mean(page: Page) -> SiteReading:
    return _map(page, "mean", aggregation.mean_over_heads(page.attention.weights), probabilities=True)


def _max(page: Page) -> SiteReading:
    return _map(page, "max", aggregation.max_over_heads(page.attention.weights), probabilities=False)


def _value_weighted(page: Page) -> SiteReading | str:
    attention = with_values(page)
    if isinstance(attention, str):
        return attention
    projection = _projection(page)
    assert attention.v is not None
    # The columns of W_O that read this head, where the engine gives them: values count as they reach the residual stream.
    of_head = None if projection is None else np.split(projection, attention.heads, axis=1)[page.head]
    values = aggregation.value_weighted(attention.head(page.head), attention.v[page.head], of_head)
    return _map(page, "value", values, probabilities=False, projected=projection is not None)


def _writes(page: Page) -> SiteReading | str:
    if page.info.recorded:
        return needs_network()
    if not page.info.writes:
        return _("This model generates no tokens: it has no output layer whose logits a value could raise or lower.")
    decoder = page.info.spec["decoder"]
    if page.attention.site.stack == "encoder" and decoder.get("wiring") != "memory":
        return _("A head of the encoder writes no token directly: what it writes is read by the heads of the decoder.")
    return replace(_weights(page), reading=catalogue(page.attention.site)["writes"])


def _rollout(page: Page) -> SiteReading | str:
    site = page.attention.site
    if page.trace.recorded is not None:
        return _("A recording of a program does not show how its attention layers follow one another, so there is no rollout.")
    if not can_be_rolled_out(page.trace, site):
        return _(
            "In this decoder the queries come from the encoder’s output, so there is no residual stream that rollout could follow."
        )
    bare = [stack for stack, spec in page.info.spec.items() if isinstance(spec, Mapping) and spec.get("wiring") == "attention"]
    values = rollout(page.trace, site, bare)
    rounding = 1e-5 if page.trace.model.get("dtype", "float32") == "float32" else 2e-2  # in lower precision, rows sum to nearly 1
    sums_to_one = bool(np.allclose(values.sum(axis=-1), 1, rtol=0, atol=rounding))
    rollout_map = _map(page, "rollout", values, probabilities=sums_to_one)
    return rollout_map if sums_to_one else replace(rollout_map, notes=(_rest(page, values),))


_COMPUTED: Mapping[str, Callable[[Page], SiteReading | str]] = {
    "mean": _mean,
    "max": _max,
    "value": _value_weighted,
    "writes": _writes,
    "rollout": _rollout,
}


def _rest(page: Page, values: Array) -> str:
    """Sentence on where the rest of a decoder's rollout is."""
    share = float(np.nanmean(values.sum(axis=-1)))
    if page.attention.site.kind == "cross":
        return _(
            "On average, {share:.0%} of a row falls on source tokens, and the rest on the target tokens read so far.", share=share
        )
    return _(
        "On average, {share:.0%} of a row falls on target tokens, and the rest on source tokens read in earlier layers.",
        share=share,
    )


def _map(page: Page, name: str, values: Array, probabilities: bool, projected: bool = True) -> SiteReading:
    reading = catalogue(page.attention.site, projected)[name]
    return SiteReading(reading, values, probabilities, reading.quantity, np.arange(values.shape[1]))


def _without_special(site_reading: SiteReading, hidden: Array) -> SiteReading:
    """The reading without its hidden keys, unless there are none or no others."""
    if not hidden.any():
        return replace(site_reading, notes=(*site_reading.notes, _("These keys contain no special tokens.")))
    if hidden.all():
        return replace(site_reading, notes=(*site_reading.notes, _("All of these keys are special tokens, so none was left out.")))
    kept = aggregation.without(site_reading.values, hidden)
    note = _n(
        "{count} special token left out; it held {share:.0%} of the weight. The rest of each row is rescaled to sum to 1.",
        "{count} special tokens left out; they held {share:.0%} of the weight. The rest of each row is rescaled to sum to 1.",
        int(hidden.sum()),
        count=int(hidden.sum()),
        share=kept.share,
    )
    empty = (
        (
            _n(
                "{count} row had all its weight on special tokens and is now empty.",
                "{count} rows had all their weight on special tokens and are now empty.",
                kept.emptied,
                count=kept.emptied,
            ),
        )
        if kept.emptied
        else ()
    )
    return replace(
        site_reading,
        values=kept.values,
        probabilities=True,
        quantity=_("share of the rest"),
        keys=np.flatnonzero(~hidden),
        notes=(*site_reading.notes, note, *empty),
    )


def _without_first(page: Page, site_reading: SiteReading) -> SiteReading:
    """The reading without the first key, unless there is no other."""
    if len(site_reading.keys) < 2:
        note = _("There is no key besides the first token, so it is not left out.")
        return replace(site_reading, notes=(*site_reading.notes, *((note,) if page.view.hide else ())))
    kept = aggregation.without(site_reading.values, np.arange(len(site_reading.keys)) == 0)
    choose = page.attention.mask.sum(axis=-1) >= 2
    share = aggregation.without(site_reading.values[choose], np.arange(len(site_reading.keys)) == 0).share
    token = tokens.token(page.trace.tokens[page.attention.key_tokens], 0)
    note = (
        _(
            "Without the first token, “{token}”, which holds {share:.0%} of a row on average. The rest of each row is rescaled to "
            "sum to 1.",
            token=token,
            share=share,
        )
        if np.isfinite(share)
        else _("Without the first token, “{token}”. The rest of each row is rescaled to sum to 1.", token=token)
    )
    empty = _n(
        "{count} row had all its weight on the first token and is now empty.",
        "{count} rows had all their weight on the first token and are now empty.",
        kept.emptied,
        count=kept.emptied,
    )
    return replace(
        site_reading,
        values=kept.values,
        probabilities=True,
        quantity=_("share of the rest"),
        keys=site_reading.keys[1:],
        notes=(*site_reading.notes, note, *((empty,) if kept.emptied else ())),
    )


def _entropy(page: Page, rows: SiteReading) -> SiteReading:
    """The entropy of each row of weights, and its maximum, over the row's allowed keys."""
    reading = catalogue(page.attention.site)["entropy"]
    allowed = page.attention.mask[:, rows.keys].sum(axis=-1)
    most = np.log(np.maximum(allowed, 1))
    return replace(rows, reading=reading, values=entropies(rows.values), quantity=reading.quantity, most=most)


def _projection(page: Page) -> Array | None:
    """W_O of the selected site, [model, head · head_dim]; None if the engine does not provide it."""
    try:
        name = _projection_name(page.attention.site, page.info.spec)
        return page.engine.ask(Tensors(page.info.name, names=(name,), settings=page.view.parsed_settings()))[name]
    except HeadlightError:
        return None


def _projection_name(site: Site, spec: Mapping[str, object]) -> str:
    """The name of the output projection's matrix in the state dict."""
    stack = f"{site.stack}." if spec.get("encoder") else ""
    module = f"{site.kind}_attention" if stack and site.stack == "decoder" else "attention"
    return f"{stack}layers.{site.layer}.{module}.output.weight"


def overview(page: Page, writes: bool = False) -> dict[str, bytes]:
    """The scenes `strips` and `atlas`.

    Args:
        page: what is shown.
        writes: whether its run still decodes.
    """
    trace, site, head, query = page.trace, page.attention.site, page.head, page.view.query
    return {
        "strips": attention.strips(trace, site, query, live=True),
        "atlas": attention.atlas(trace, site, head, query, live=True, writes=writes, rest=hides(page) == "first"),
    }


def selected_head(page: Page, site_reading: SiteReading | None) -> dict[str, bytes]:
    """The scenes `lines`, or `overlay` where an image was read, and, where the page draws the weights themselves, `cells`; no lines
    and cells if there are too many tokens.

    Args:
        site_reading: the reading of the selected site; None: the weights of the selected head as they ran.
    """
    trace, site, head, query = page.trace, page.attention.site, page.head, page.view.query
    raw = site_reading is None or is_raw(page, site_reading)
    read = None if site_reading is None or raw else _read(page, site_reading)
    scenes: dict[str, bytes] = {}
    if trace.image is not None and overlay.fits(trace, site):
        hidden = hidden_positions(RunRequest.edits_in(trace.request), trace.tokens)
        scenes["overlay"] = overlay.scene(trace, site, head, query, page.view.overlay, read, hidden)
    elif fits(page):
        scenes["lines"] = attention.lines(trace, site, head, query, read, live=True)
    if raw and fits(page):
        writes = _cell_words(page) if site_reading is not None and site_reading.reading.name == "writes" else None
        scenes["cells"] = attention.cells(trace, Stage(str(site), "weights"), head, query, page.view.key, live=True, writes=writes)
    return scenes


def _cell_words(page: Page) -> attention.Asks | None:
    """How the drawing asks what its cells write; None where nobody answers."""
    return next((feature.cell_words(page) for feature in features() if feature.cell_words is not None), None)


def _read(page: Page, site_reading: SiteReading) -> ReadingScene | None:
    """A reading for the lines; None: it has one number for each row, so the lines show the weights of the selected head."""
    if site_reading.values.ndim == 1:
        return None
    whole = np.zeros(page.attention.mask.shape)
    whole[:, site_reading.keys] = site_reading.values
    return ReadingScene("/".join(file_parts(page, site_reading)), title(page, site_reading), whole)


def table(page: Page, site_reading: SiteReading) -> pd.DataFrame:
    """The numbers of the reading that is shown."""
    if site_reading.most is None:
        return tables.map_table(page.trace, page.attention, site_reading.values, site_reading.keys)
    return tables.row_table(page.trace, page.attention, site_reading.values, site_reading.quantity)
