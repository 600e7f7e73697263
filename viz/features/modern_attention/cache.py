"""What a decoder keeps of the tokens that it has read, how it grows, and what it saves."""

import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.features.modern_attention.costs import LayerSizes, Measures, Sizes, WithoutCache
from viz.features.modern_attention import cost_panels
from viz.features.modern_attention.cost_numbers import bytes_of, decoded, step_lines
from viz.figures import costs
from viz.i18n.translate import _, _n, amount_of_bytes, error_message, number
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets import drawn_panels, numeric_tables
from viz.widgets.cards import chart, panel, say
from viz.widgets.offers import LATENTS, SHARING, offer


def draw(page: Page, sizes: Sizes) -> None:
    """Draws what is kept of each token, and what that saves."""
    with panel("cache"):
        _kept(page, sizes)
        _computed(page, sizes)


def sizes_of(page: Page) -> Sizes | None:
    """What the cost of the model follows from; None: it says why that is not known."""
    try:
        return page.engine.ask(Measures(page.info.name, page.view.parsed_settings()))
    except HeadlightError as error:
        say(error_message(error))
        return None


def _kept(page: Page, sizes: Sizes) -> None:
    """Draws what is kept: over the tokens as lines, and after one of them layer by layer."""
    size, source = bytes_of(page.trace), len(page.trace.tokens["source"]) if sizes.cross else 0
    total, first_layer = page.trace.of("decoder", "self")[0].mask.shape[0], sizes.layers[0]
    fields = {"bytes": amount_of_bytes(size * sizes.kept(1)), "dtype": page.trace.model["dtype"]}
    st.markdown(
        _(
            "A later token needs the keys and values of all earlier ones, and these stay the same. A program that generates text "
            "keeps them and computes only one row for each new token. This model keeps {bytes} for each token in {dtype}, "
            "in all layers together.",
            **fields,
        )
    )
    for sentence in savings(sizes):
        st.caption(sentence)
    drawn_panels.draw(page, cost_panels.ways_of(page, sizes), "cache-ways")
    if first_layer.key_heads == first_layer.heads and not first_layer.latent:
        offer(page, "shared", _("Open a model whose heads share keys and values"), SHARING, opened="cache")
    if not first_layer.latent:
        offer(page, "latents", _("Show a recorded run with latents"), LATENTS, opened="latents")
    if sizes.cross:
        st.caption(
            _(
                "The keys and values of the source, {bytes}, are computed once and do not grow.",
                bytes=amount_of_bytes(size * (sizes.kept(0, source))),
            )
        )
    after = _chosen(total)
    drawn_panels.draw_content(page, cost_panels.kept(page, sizes, after), "cache-chart")
    numeric_tables.draw(_layers(sizes, after, source, size, first_layer), key="cache-table")
    st.caption(
        _(
            "While Headlight runs a model of its own kind, it keeps a copy for each query head, so that the keys of one head can "
            "be shown and changed. The bytes above are those that are needed."
        )
    )


def _chosen(total: int) -> int:
    """Draws the choice of a number of tokens, up to `total`, by default all."""
    return int(st.slider(_("After this many tokens"), 1, total, total, key=f"cache-after-{total}")) if total > 1 else 1


def savings(sizes: Sizes) -> list[str]:
    """What shared heads, latents and windows save, a sentence each."""
    first_layer, sentences = sizes.layers[0], list[str]()
    if first_layer.latent:
        fields = {"latent": first_layer.latent, "times": number(first_layer.kept(1, "heads") / first_layer.kept(1), ".1f")}
        sentences.append(
            _(
                "Latent attention: all heads of a layer make their keys and values from one latent of width {latent}, and only "
                "this latent is kept. Keeping the keys and values of every head would take more, by a factor of {times}. "
                "They are made again in each step.",
                **fields,
            )
        )
    elif first_layer.key_heads < first_layer.heads:
        fields = {
            "heads": first_layer.heads,
            "key_heads": first_layer.key_heads,
            "times": number(first_layer.heads / first_layer.key_heads, ".3g"),
        }
        sentences.append(
            _(
                "Grouped queries: query heads share key and value heads, {heads} to {key_heads}, so the cache is smaller by a "
                "factor of {times}.",
                **fields,
            )
        )
    else:
        sentences.append(_("Each query head has keys and values of its own, so nothing is saved by sharing them."))
    windows = sorted({layer.window for layer in sizes.layers if layer.window})
    if windows:
        count = sum(bool(layer.window) for layer in sizes.layers)
        sentences.append(
            _n(
                "{count} of {layers} layers has a window of {window:,} tokens: what lies before it need not be kept.",
                "{count} of {layers} layers have a window of {window:,} tokens: what lies before it need not be kept.",
                count,
                count=count,
                layers=len(sizes.layers),
                window=windows[-1],
            )
        )
    return sentences


def _layers(sizes: Sizes, after: int, source: int, size: int, first_layer: LayerSizes) -> pd.DataFrame:
    """What is kept after some tokens, layer by layer and head by head."""
    rows = []
    for kind, layer in [*(("self", layer) for layer in sizes.layers), *(("cross", layer) for layer in sizes.cross)]:
        count = after if kind == "self" else source
        heads = 1 if layer.latent else layer.key_heads
        reached = min(count, layer.window - 1) if layer.window else count
        rows.append(
            (tokens.kind("decoder", kind), heads, count, reached, size * layer.kept(count) // heads, size * layer.kept(count))
        )
    names = {
        "kind": _("attention"),
        "heads": _("latents") if first_layer.latent else _("key and value heads"),
        "kept": _("tokens kept"),
        "reached": _("still reached by the next one"),
        "each": _("bytes of each"),
        "bytes": _("bytes"),
    }
    numbers = [*range(1, len(sizes.layers) + 1), *range(1, len(sizes.cross) + 1)]
    return pd.DataFrame(rows, columns=list(names.values()), index=pd.Index(numbers, name=_("layer")))


def _computed(page: Page, sizes: Sizes) -> None:
    """Draws the operations of each pass with a cache and without, and on request the time of both."""
    _lengths, cached, whole = decoded(page, sizes)
    st.markdown("**" + _("The same tokens with a cache and without") + "**")
    st.caption(
        _(
            "Multiplications and additions in matrix products, by formula: {cached:,} with the cache and {whole:,} without it, "
            "which is larger by a factor of {times}.",
            cached=sum(cached),
            whole=sum(whole),
            times=number(sum(whole) / sum(cached), ".1f"),
        )
    )
    drawn_panels.draw_content(page, cost_panels.computed(page, sizes), "cache-operations")
    if page.view.request().edits:
        st.caption(_("The time of both is measured for runs without changes."))
        return
    if not st.toggle(_("Read these tokens again without the cache, and compare maps and time"), key="cache-measured"):
        return
    try:
        measured = page.engine.ask(WithoutCache(page.view.request()))
    except HeadlightError as error:
        say(error_message(error))
        return
    fields = {"weights": tokens.power_of_ten(measured.weights), "logits": tokens.power_of_ten(measured.logits)}
    st.caption(
        _("The maps are the same: largest difference of a weight {weights}, of a logit {logits}.", **fields)
        if measured.weights < 1e-3 or page.trace.model["dtype"] != "float32"
        else _("The maps differ: largest difference of a weight {weights}, of a logit {logits}.", **fields)
    )
    fields = {"cached": number(float(measured.cached.sum()), ".0f"), "whole": number(float(measured.whole.sum()), ".0f")}
    st.caption(_("Measured once on this machine, in milliseconds: {cached} with the cache, {whole} without.", **fields))
    drawn = step_lines(measured.cached.tolist(), measured.whole.tolist())
    figure = costs.lines(measured.lengths.tolist(), drawn, (_("tokens read"), _("milliseconds of this step")), page.dark)
    words = _("Milliseconds: {cached} with the cache, {whole} without.", **fields)
    chart(figure, (page.trace, _("Time of each step")), key="cache-times", alt=words)
