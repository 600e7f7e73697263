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
class Shown:
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


def shown(page: Page) -> Shown:
    """The reading that the view asks for; if it is not available, the raw weights and a note that says why."""
    name, attention = page.view.reading, page.attention
    found = _COMPUTED[name](page) if name in _COMPUTED else _weights(page)
    if isinstance(found, str):
        found = replace(_weights(page), notes=(found, _("Showing the weights of the selected head instead.")))
    match "none" if found.reading.name == "writes" else hides(page):
        case "special":
            found = _without_special(found, np.asarray(page.trace.tokens[attention.key_tokens].special[: len(found.keys)], bool))
        case "first":
            found = _without_first(page, found)
    return _entropy(page, found) if name == "entropy" else found


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


def is_raw(page: Page, shown: Shown) -> bool:
    """Whether the map is the weights of the selected head as they ran, all keys included."""
    return shown.reading.name in WEIGHTS and len(shown.keys) == page.attention.mask.shape[1]


def title(page: Page, shown: Shown) -> str:
    """Title of the picture: the selected head for raw weights; for derived numbers the reading's name first."""
    whose = tokens.site(page.attention.site, page.head if shown.reading.of_head else None)
    name = whose if shown.reading.name == "head" else _("{reading} · {site}", reading=shown.reading.title, site=whose)
    left = hides(page) == "first" and len(shown.keys) < page.attention.mask.shape[1]
    return _("{title}, without the first token", title=name) if left else name


def file_parts(page: Page, shown: Shown) -> tuple[str, ...]:
    """Parts of the name of a file with this reading."""
    head = (f"head-{page.head + 1}",) if shown.reading.of_head else ()
    reading = () if shown.reading.name == "head" else (shown.reading.name,)
    hidden = (f"without-{hides(page)}",) if len(shown.keys) < page.attention.weights.shape[2] else ()
    return (str(page.attention.site), *head, *reading, *hidden)


def _weights(page: Page) -> Shown:
    return _map(page, "head", page.attention.head(page.head), probabilities=True)


def _mean(page: Page) -> Shown:
    return _map(page, "mean", aggregation.mean_over_heads(page.attention.weights), probabilities=True)


def _max(page: Page) -> Shown:
    return _map(page, "max", aggregation.max_over_heads(page.attention.weights), probabilities=False)


def _value_weighted(page: Page) -> Shown | str:
    found = with_values(page)
    if isinstance(found, str):
        return found
    projection = _projection(page)
    assert found.v is not None
    own = None if projection is None else np.split(projection, found.heads, axis=1)[page.head]
    values = aggregation.value_weighted(found.head(page.head), found.v[page.head], own)
    return _map(page, "value", values, probabilities=False, projected=projection is not None)


def _writes(page: Page) -> Shown | str:
    if page.info.recorded:
        return needs_network()
    if not page.info.writes:
        return _("This model generates no tokens: it has no output layer whose logits a value could raise or lower.")
    decoder = page.info.spec["decoder"]
    if page.attention.site.stack == "encoder" and decoder.get("wiring") != "memory":
        return _("A head of the encoder writes no token directly: what it writes is read by the heads of the decoder.")
    return replace(_weights(page), reading=catalogue(page.attention.site)["writes"])


def _rollout(page: Page) -> Shown | str:
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
    found = _map(page, "rollout", values, probabilities=bool(np.allclose(values.sum(axis=-1), 1, rtol=0, atol=rounding)))
    return found if found.probabilities else replace(found, notes=(_rest(page, values),))


_COMPUTED: Mapping[str, Callable[[Page], Shown | str]] = {
    "mean": _mean,
    "max": _max,
    "value": _value_weighted,
    "writes": _writes,
    "rollout": _rollout,
}


def _rest(page: Page, values: Array) -> str:
    """Sentence on where the rest of a decoder's rollout is."""
    gaps = {"share": float(np.nanmean(values.sum(axis=-1)))}
    if page.attention.site.kind == "cross":
        return _("On average, {share:.0%} of a row falls on source tokens, and the rest on the target tokens read so far.", **gaps)
    return _(
        "On average, {share:.0%} of a row falls on target tokens, and the rest on source tokens read in earlier layers.",
        **gaps,
    )


def _map(page: Page, name: str, values: Array, probabilities: bool, projected: bool = True) -> Shown:
    reading = catalogue(page.attention.site, projected)[name]
    return Shown(reading, values, probabilities, reading.quantity, np.arange(values.shape[1]))


def _without_special(found: Shown, hidden: Array) -> Shown:
    """`found` without its hidden keys, unless there are none or no others."""
    if not hidden.any():
        return replace(found, notes=(*found.notes, _("These keys contain no special tokens.")))
    if hidden.all():
        return replace(found, notes=(*found.notes, _("All of these keys are special tokens, so none was left out.")))
    kept = aggregation.without(found.values, hidden)
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
        found,
        values=kept.values,
        probabilities=True,
        quantity=_("share of the rest"),
        keys=np.flatnonzero(~hidden),
        notes=(*found.notes, note, *empty),
    )


def _without_first(page: Page, found: Shown) -> Shown:
    """`found` without the first key, unless there is no other."""
    if len(found.keys) < 2:
        said = (_("There is no key besides the first token, so it is not left out."),) if page.view.hide else ()
        return replace(found, notes=(*found.notes, *said))
    kept = aggregation.without(found.values, np.arange(len(found.keys)) == 0)
    choose = page.attention.mask.sum(axis=-1) >= 2
    share = aggregation.without(found.values[choose], np.arange(len(found.keys)) == 0).share
    gaps = {"token": tokens.token(page.trace.tokens[page.attention.key_tokens], 0), "share": share}
    note = (
        _(
            "Without the first token, “{token}”, which holds {share:.0%} of a row on average. The rest of each row is rescaled to "
            "sum to 1.",
            **gaps,
        )
        if np.isfinite(share)
        else _("Without the first token, “{token}”. The rest of each row is rescaled to sum to 1.", **gaps)
    )
    empty = _n(
        "{count} row had all its weight on the first token and is now empty.",
        "{count} rows had all their weight on the first token and are now empty.",
        kept.emptied,
        count=kept.emptied,
    )
    return replace(
        found,
        values=kept.values,
        probabilities=True,
        quantity=_("share of the rest"),
        keys=found.keys[1:],
        notes=(*found.notes, note, *((empty,) if kept.emptied else ())),
    )


def _entropy(page: Page, rows: Shown) -> Shown:
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


def selected_head(page: Page, shown: Shown | None) -> dict[str, bytes]:
    """The scenes `lines`, or `overlay` where an image was read, and, where the page draws the weights themselves, `cells`; no lines
    and cells if there are too many tokens.

    Args:
        shown: the reading of the selected site; None: the weights of the selected head as they ran.
    """
    trace, site, head, query = page.trace, page.attention.site, page.head, page.view.query
    raw = shown is None or is_raw(page, shown)
    read = None if shown is None or raw else _read(page, shown)
    found: dict[str, bytes] = {}
    if trace.image is not None and overlay.fits(trace, site):
        hidden = hidden_positions(RunRequest.edits_in(trace.request), trace.tokens)
        found["overlay"] = overlay.scene(trace, site, head, query, page.view.overlay, read, hidden)
    elif fits(page):
        found["lines"] = attention.lines(trace, site, head, query, read, live=True)
    if raw and fits(page):
        writes = _cell_words(page) if shown is not None and shown.reading.name == "writes" else None
        found["cells"] = attention.cells(trace, Stage(str(site), "weights"), head, query, page.view.key, live=True, writes=writes)
    return found


def _cell_words(page: Page) -> attention.Asks | None:
    """How the drawing asks what its cells write; None where nobody answers."""
    return next((feature.cell_words(page) for feature in features() if feature.cell_words is not None), None)


def _read(page: Page, shown: Shown) -> ReadingScene | None:
    """A reading for the lines; None: it has one number for each row, so the lines show the weights of the selected head."""
    if shown.values.ndim == 1:
        return None
    whole = np.zeros(page.attention.mask.shape)
    whole[:, shown.keys] = shown.values
    return ReadingScene("/".join(file_parts(page, shown)), title(page, shown), whole)


def table(page: Page, shown: Shown) -> pd.DataFrame:
    """The numbers of the reading that is shown."""
    if shown.most is None:
        return tables.map_table(page.trace, page.attention, shown.values, shown.keys)
    return tables.row_table(page.trace, page.attention, shown.values, shown.quantity)
