"""The part of the page Masks about models of today: the mask of each layer, another one instead, and a proof with another token."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.engine.api import Run
from model.errors import HeadlightError
from model.requests.edits import MOST_EDITS, Allow, Edit, Embed, Forbid, write_edits
from model.requests.request import RunRequest
from model.trace.types import Array, Attention, Site, Trace
from viz.features.modern_attention import kinds_of_masks, reach_figure
from viz.features.modern_attention.kinds_of_masks import MaskKind
from viz.i18n.translate import _, error_message
from viz.labels import alt_text, tokens
from viz.labels.tokens import MaskForm
from viz.session.state import Page, update
from viz.views.mask_panels import of_mask
from viz.widgets import drawn_panels, numeric_tables
from viz.widgets.cards import chart, expander_state, panel, say
from viz.widgets.offers import SINKS, offer

LONGEST = 256
"""Most tokens of a text whose masks are named, changed, or proved."""


def show(page: Page, form: MaskForm) -> None:
    """Draws the kinds of masks of the stack of the page's site, another mask on paper, and the proof; none of cross-attention."""
    attention = page.attention
    if attention.site.kind != "self" or attention.mask.shape[0] != attention.mask.shape[1] or len(attention.mask) > LONGEST:
        return
    layers = page.trace.of(attention.site.stack, "self")
    title = _("Windows, prefixes and packed documents: the mask of each layer, and another one instead")
    state = expander_state("mask-kinds", page.view.opened)
    with st.expander(title, icon=":material/view_week:", **state) as part, panel("mask-kinds"):
        if not part.open:
            return
        _layers(page, layers)
        left, right = st.columns(2, gap="medium")
        with left:
            _other(page, attention, form, len(layers))
        if not page.info.recorded:
            with right:
                _reach(page, layers)


def words(kind: MaskKind) -> str:
    """A kind of mask in words."""
    fields = {"size": kind.size, "before": kind.size - 1}
    return {
        "all": _("every token sees every token"),
        "causal": _("causal: itself and all before it"),
        "window": _("sliding window of width {size:,}: itself and the {before:,} before it", **fields),
        "both-sides": _("window to both sides: at most {before:,} away", **fields),
        "chunks": _("chunks of {size:,}: itself and those before it in its chunk", **fields),
        "prefix": _("prefix of {size:,}, which every token sees; then causal", **fields),
        "documents": _("packed documents ({size:,}): itself and those before it in its document", **fields),
        "other": _("another mask"),
    }[kind.kind]


def table(layers: Sequence[Attention]) -> pd.DataFrame:
    """The mask of each layer: its kind, the most keys of a query, and its open cells."""
    columns = {
        _("mask"): [words(kinds_of_masks.kind_of(layer.mask)) for layer in layers],
        _("keys per query, at most"): [int(layer.mask.sum(axis=1).max(initial=0)) for layer in layers],
        _("allowed cells"): [alt_text.percent(float(layer.mask.mean())) for layer in layers],
    }
    return pd.DataFrame(columns, index=pd.Index(range(1, len(layers) + 1), name=_("layer")))


def reaches(layers: Sequence[Attention]) -> str:
    """On how many tokens the last one depends, in words."""
    back, count = kinds_of_masks.farthest(layer.mask for layer in layers), len(layers[0].mask)
    return _(
        "Through all layers, the last token depends on the newest {back:,} of {count:,}, including itself.", back=back, count=count
    )


def _layers(page: Page, layers: tuple[Attention, ...]) -> None:
    st.markdown("**" + _("The mask of each layer") + "**")
    kinds = [kinds_of_masks.kind_of(layer.mask) for layer in layers]
    numeric_tables.draw(table(layers), key="mask-kinds-table")
    st.caption(reaches(layers))
    if not any(kind.kind in ("window", "chunks", "both-sides", "prefix", "documents") for kind in kinds):
        st.caption(
            _(
                "A window is visible only in a text that is longer than the window. No bundled or known model has one; folders of "
                "Mistral, Gemma 2 and 3, gpt-oss and ModernBERT do. You can try one with any model here."
            )
        )
        offer(page, "window", _("Show a recorded run with a window"), SINKS, opened="mask-kinds")


def _other(page: Page, attention: Attention, form: MaskForm, layers: int) -> None:
    """Draws another mask on paper, and a button that runs the sentence with it."""
    st.markdown("**" + _("What if the mask were different?") + "**")
    names: dict[kinds_of_masks.Made, str] = {
        "window": _("sliding window"),
        "chunks": _("chunks"),
        "prefix": _("prefix, such as a system prompt"),
        "documents": _("packed documents"),
        "causal": _("causal"),
    }
    count = len(attention.mask)
    kind = st.selectbox(_("Kind of mask"), list(names), format_func=names.__getitem__, key="mask-made")
    size = 2
    if kind != "causal" and count > 2:
        label = _("The second document begins at token") if kind == "documents" else _("Width in tokens")
        size = int(st.slider(label, 2, count, min(max(2, count // 3), count), key=f"mask-size-{count}"))
    made = kinds_of_masks.pattern(kind, count, size, [size - 1]) & attention.mask.any(axis=0, keepdims=True)
    back = kinds_of_masks.farthest([made] * layers)
    st.caption(
        _(
            "In every layer: {open} of the cells are allowed, and the last token depends on the newest {back:,} of {count:,}.",
            open=alt_text.percent(float(made.mean())),
            back=back,
            count=count,
        )
    )
    drawn_panels.draw_content(page, of_mask(page.trace, attention, made, (kind, names[kind]), form), "mask-made-chart")
    if page.info.recorded or page.trace.recorded is not None:
        return
    if page.view.request().edits:
        st.caption(_("This run already has edits. Another mask can be tried only on a run without edits."))
        return
    edits = edits_for(attention, made)
    if len(edits) > MOST_EDITS:
        st.caption(_("This text is too long to be run with another mask."))
        return
    st.button(
        _("Run this sentence with this mask in every layer"),
        icon=":material/science:",
        key="mask-run",
        disabled=not edits,
        on_click=update,
        kwargs={"edits": write_edits(edits)},
    )


def edits_for(attention: Attention, made: Array) -> tuple[Edit, ...]:
    """The edits that turn the mask of a site, and of all self-attention of its stack, into another one: one for each key."""
    edits = list[Edit]()
    stack: Literal["encoder", "decoder"] = "encoder" if attention.site.stack == "encoder" else "decoder"
    for key in range(len(made)):
        for kind, cells in ((Forbid, attention.mask & ~made), (Allow, made & ~attention.mask)):
            if len(queries := np.flatnonzero(cells[:, key])):
                edits.append(kind(stack=stack, kind="self", query=tuple(map(int, queries)), key=(key,)))
    return tuple(edits)


def _reach(page: Page, layers: tuple[Attention, ...]) -> None:
    """Draws which states change if a token is exchanged, and compares them with what the masks allow."""
    st.markdown("**" + _("Does changing a masked token change the output?") + "**")
    site = layers[0].site
    strip = page.trace.tokens[layers[0].query_tokens]
    names = tokens.strip(strip)[: len(layers[0].mask)]
    token = _chosen(names)
    st.caption(
        _("The tokens are read twice: as they are, and with another word at this place. States in gray did not change at all.")
    )
    if not st.toggle(_("Replace it and compare"), key="mask-proved"):
        return
    given = as_given(page, page.trace, site)
    other = next((id_ for id_ in strip.ids if id_ != strip.ids[token]), strip.ids[token] + 1)
    edit = Embed(stack="encoder" if site.stack == "encoder" else "decoder", at=token, word=other)
    try:
        before, after = page.engine.ask(Run(given)), page.engine.ask(Run(replace(given, edits=(*given.edits, edit))))
    except HeadlightError as error:
        say(error_message(error))
        return
    differences = changes(before, after, site.stack)
    attentions = before.of(site.stack, "self")
    if len(differences) != len(attentions):
        st.caption(_("This run records no states between its layers, so there is nothing to compare."))
        return
    allowed = kinds_of_masks.reached((attention.mask for attention in attentions), token)[1:]
    sentence = tokens.token(strip, token)
    fields = {"token": sentence, "closed": int((~allowed).sum()), "all": allowed.size}
    st.caption(tokens.markdown(_("States that “{token}” cannot reach, according to the masks: {closed} of {all}.", **fields)))
    largest = float(differences[~allowed].max(initial=0.0))
    if largest:
        sentence = _(
            "Largest change there: {largest}. So the masks do not block what they show as masked.",
            largest=tokens.power_of_ten(largest),
        )
        st.caption(sentence)
    elif fields["closed"]:
        st.caption(_("Largest change there: exactly 0."))
    rows = [tokens.site(attention.site) for attention in attentions]
    figure = reach_figure.changed(differences, rows, names, tokens.query_axis(before, site), page.dark)
    words_ = alt_text.table(differences, _("positions"))
    chart(figure, (before, _("What changes with a token")), key="mask-reach-chart", alt=words_)


def _chosen(names: list[str]) -> int:
    """Draws the choice of a token, by default the first one."""
    numbered, key = [f"{number} · {name}" for number, name in enumerate(names, start=1)], f"mask-token-{len(names)}"
    return int(st.selectbox(_("Token to replace"), range(len(names)), format_func=numbered.__getitem__, key=key))


def as_given(page: Page, trace: Trace, site: Site) -> RunRequest:
    """The request that reads the tokens of a run as they are, and generates nothing, keeping the states between layers."""
    request = page.view.request(keep=("hidden",))
    rows = len(trace.at(site).mask)
    if page.info.continues:
        decoding = replace(request.decoding, max_length=0, method="greedy")
        return replace(request, source=trace.tokens["source"].ids[:rows], decoding=decoding, begin=())
    if "target" in trace.tokens and page.info.translates:
        target = trace.tokens["target"].ids[: trace.of("decoder", "self")[0].mask.shape[0]]
        return replace(request, target=target, begin=())
    return request


def changes(before: Trace, after: Trace, stack: str) -> Array:
    """The largest change of a number of each state of a stack: [layer, position], float64; no layers where none were recorded."""
    names = [name for name in before.hidden if name.startswith(f"{stack}.") and name in after.hidden]
    largest = [np.abs(after.hidden[name].astype(np.float64) - before.hidden[name]).max(axis=-1) for name in names]
    return np.array(largest)
