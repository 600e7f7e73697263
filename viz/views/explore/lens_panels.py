"""The panel of a run's logit lens: the likeliest tokens after each decoder layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
from cachetools import LRUCache, cached

from model.engine.api import Engine, Run, Tensors, Texts
from model.requests.request import RunRequest
from model.trace.types import Array
from viz.export import tables
from viz.figures import lens as figure
from viz.i18n.translate import _, number, titled
from viz.labels import alt_text, tokens
from viz.metrics import logit_lens
from viz.panels import Panel, Plot, Table, Text, TextLine, needs_network
from viz.session.state import Page, decimals


@dataclass(frozen=True, eq=False)
class RunLens:
    """The lens of a run, with words.

    Attributes:
        positions: their labels.
        layers: their names, counted from 1.
        axis: title of the axis of positions.
        words: [layer, position, candidate], texts.
        probabilities: [layer, position, candidate].
    """

    positions: list[str]
    layers: list[str]
    axis: str
    words: Array
    probabilities: Array

    @property
    def table(self) -> pd.DataFrame:
        """All numbers, one row per position, layer and candidate."""
        return tables.lens_table(self.positions, self.layers, self.words, self.probabilities, self.axis)


def reason_against(page: Page) -> str:
    """Why this model has no lens; empty: it has one."""
    spec = page.info.spec
    if page.info.recorded:
        return needs_network()
    if not spec.get("decoder") or not spec.get("output"):
        return _("This model has no output layer that could turn its states into words.")
    if spec.get("program"):
        return _(
            "This network is run by an external library whose final normalization and output layer are not accessible, "
            "so there is no logit lens."
        )
    if spec["output"].get("softmax") == "batch":
        return _(
            "This model applies its softmax across the batch, not across words, so every probability of a single sentence is 1."
        )
    return ""


def of_run(page: Page) -> RunLens:
    """The lens of the page's run.

    Raises:
        HeadlightError: the run that keeps the hidden states is not possible.
    """
    request = page.view.request(keep=("hidden",))
    lens, words = _lens_and_words(request, str(page.trace.model["fingerprint"]), page.engine, page.info.spec)
    last = [attention for site, attention in page.trace.attention.items() if site.stack == "decoder"][-1]
    positions = tokens.queries(page.trace, last, longest=None)[: lens.ids.shape[1]]
    layers = [_layer_name(name, lens.layers) for name in lens.layers]
    return RunLens(positions, layers, tokens.query_axis(page.trace, last.site), words, lens.probabilities)


# A script runs again at each choice on the page: it then finds the lens here, and asks the engine for nothing.
@cached(LRUCache(8), key=lambda request, fingerprint, _engine, _spec: (request, fingerprint), lock=Lock())
def _lens_and_words(
    request: RunRequest, _fingerprint: str, engine: Engine, spec: Mapping[str, Any]
) -> tuple[logit_lens.Lens, Array]:
    """The lens of a run, and its words, [layer, position, candidate] of texts."""
    trace = engine.ask(Run(request))
    names = logit_lens.output_names(spec)
    lens = logit_lens.lens(trace, spec, engine.ask(Tensors(request.model, names=names, settings=request.settings)))
    ids, indices = np.unique(lens.ids, return_inverse=True)
    strip = "target" if "target" in trace.tokens else "source"
    texts = engine.ask(Texts(request.model, strip=strip, ids=tuple(ids.tolist()), settings=request.settings))
    return lens, np.array([tokens.word(text) for text in texts], object)[indices].reshape(lens.ids.shape)


def _layer_name(name: str, names: tuple[str, ...]) -> str:
    """The name of a column, counted from 1: "3", or "2.3" if the stack runs more than once."""
    pass_, layer = (int(part) + 1 for part in name.split("."))
    return f"{pass_}.{layer}" if any(not other.startswith("0.") for other in names) else str(layer)


def panel(page: Page, lens: RunLens) -> Panel:
    """The likeliest token after each layer; a page has the other candidates below the pointer."""
    likeliest = lens.probabilities[:, :, 0].T  # [position, layer]
    texts = [
        [f"{word} {number(share, '.2f')}" for word, share in zip(*row, strict=True)]
        for row in zip(lens.words[:, :, 0].T, likeliest, strict=True)
    ]
    columns = [_("after layer {layer}", layer=layer) for layer in lens.layers]
    frame = pd.DataFrame(texts, index=pd.Index(lens.positions, name=lens.axis), columns=columns)
    title = _("Logit lens: the most likely next token after each layer")

    def on_page() -> Plot:
        parts, query, form = (lens.positions, lens.layers, lens.words, lens.probabilities), page.view.query, decimals(4)
        return Plot(lambda dark: figure.lens(*parts, dark, lens.axis, query, form), titled(title, alt_text.lens(*parts)), "lens")

    return Panel("lens", title, Table(frame, page.view.query, shades=likeliest), on_page=on_page)


def explanation(page: Page) -> Text:
    """How the lens is computed, what it is, and what it is not."""
    normed = page.info.spec["decoder"]["final_norm"]
    formula = (
        r"\operatorname{softmax}\left(\operatorname{LayerNorm}(h_\ell)\, W_{out}^\top + b_{out}\right)"
        if normed
        else r"\operatorname{softmax}\left(h_\ell\, W_{out}^\top + b_{out}\right)"
    )
    meaning = _("What the model would predict if its output layer read the state after this layer.")
    caution = _(
        "Only the last layer’s prediction is the model’s real output. Earlier layers were never trained to feed the "
        "output layer directly, and a word that does not show up may still be encoded in the state."
    )
    return Text([TextLine(formula, formula=True), TextLine(meaning), TextLine(caution)])
