"""The page Masks: which keys each query may attend to at the selected site, and a test that padding changes nothing."""

import streamlit as st

from model.errors import HeadlightError
from model.trace.types import Array, Attention, Site, Trace
from viz import labels
from viz.figures import masks
from viz.figures.frame import CONFIG
from viz.page import Page, bind, say, update
from viz.readings.padding import PaddingEffect, padding_effect
from viz.texts import _, sentence


def show(page: Page) -> None:
    """Draws the page."""
    where, how_far = st.columns(2, gap="medium")
    with where:
        tied = bind("site", head=0, query=-1)
        sites = [str(site) for site in page.trace.attention]
        st.selectbox(_("Attention"), sites, format_func=lambda text: labels.site(Site.parse(text)), **tied)
    with how_far:
        padded = _padded(page)
    with st.container(border=True, key="card-padding-effect"):
        _say_what_padding_did(page, padded)
    trace = padded or page.trace
    attention = trace.at(page.attention.site)
    added = len(trace.tokens["source"]) - len(page.trace.tokens["source"])
    _card(page, trace, attention, attention.mask_padding, "padding", _("Padding mask"), _about_padding(attention, added))
    _card(page, trace, attention, attention.mask_causal, "causal", _("Causal mask"), _about_causal(attention))
    _card(page, trace, attention, attention.mask, "both", _("Both together: the mask of this site"), _about_both())


def _padded(page: Page) -> Trace | None:
    """Draws the control that pads the source; returns the padded run, None if there is no padding or no run."""
    length, longest, asked = len(page.trace.tokens["source"]), page.info.max_source, page.view.pad_to
    if _why_not(page):
        return None
    _slider(length, longest, asked)
    try:
        return page.engine.run(page.view.request(pad_to=asked)) if asked else None
    except HeadlightError as error:
        say(sentence(error))
        return None


def _why_not(page: Page) -> str:
    """Why this source cannot be padded; empty if it can."""
    spec, longest = page.info.spec, page.info.max_source
    if spec["encoder"] is None:
        return _("A language model goes on where its prompt ends, so this prompt is not padded here.")
    if page.info.reads == "features":
        return _("This model reads vectors, among which none stands for padding, so nothing is padded here.")
    if spec.get("pad_id", 0) is None and spec.get("source_pad_id") is None:
        return _("This model has no padding token, or nobody told which it is, so nothing is padded here.")
    if len(page.trace.tokens["source"]) >= longest:
        return _("The sentence fills all {longest} positions of the encoder: there is no room for padding.", longest=longest)
    return ""


def _slider(length: int, longest: int, asked: int) -> None:
    """Draws the slider for the number of source positions; its lower end means no padding."""
    key = "widget:pad_to"
    st.session_state[key] = min(max(asked, length), longest)
    st.slider(
        _("Pad the source to so many tokens (it has {length})", length=length),
        length,
        longest,
        key=key,
        on_change=lambda: update(pad_to=st.session_state[key] if st.session_state[key] > length else 0),
    )


def _say_what_padding_did(page: Page, padded: Trace | None) -> None:
    """Draws the comparison of both runs, in numbers and in words."""
    st.markdown(f"**{_('Does padding change the output?')}**")
    if reason := _why_not(page):
        st.caption(reason)
        return
    if padded is None:
        st.caption(
            _("Move the slider: the sentence runs once more with padding behind it, and the numbers of both runs are compared.")
        )
        return
    effect = padding_effect(page.trace, padded)
    weight, difference, rows = st.columns(3)
    weight.metric(_("largest weight on padding"), _power_of_ten(effect.largest_weight))
    if effect.rows_without:
        measured = _power_of_ten(effect.largest_difference) if effect.rows else _("none")
        difference.metric(_("largest difference of a logit"), measured)
        rows.metric(_("rows compared"), _("{rows} of {all_rows}", rows=effect.rows, all_rows=effect.rows_without))
    st.caption(_about_weights(effect))
    st.caption(_about_output(effect))


def _power_of_ten(value: float) -> str:
    """A small number in scientific notation: 2.9·10⁻⁶."""
    if value == 0:
        return _("exactly 0")
    digits, exponent = f"{value:.1e}".split("e")
    return digits if int(exponent) == 0 else f"{digits}·10{str(int(exponent)).translate(_RAISED)}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _about_weights(effect: PaddingEffect) -> str:
    gaps = {"added": effect.added, "sites": effect.sites}
    if effect.largest_weight == 0:
        return _("Weights: no head of the {sites} sites that read the source gives the {added} padding tokens any weight.", **gaps)
    return _("Weights: some head of the {sites} sites that read the source looks at the {added} padding tokens.", **gaps)


def _about_output(effect: PaddingEffect) -> str:
    gaps = {"rows": effect.rows, "all_rows": effect.rows_without, "logit": f"{effect.largest_logit:.1f}"}
    if not effect.rows_without:
        return _("Output: this model writes nothing, so there are no logits to compare.")
    if effect.rows < effect.rows_without:
        return _(
            "Output: the runs wrote different words after row {rows} of {all_rows}; the rows up to there are compared.", **gaps
        )
    if effect.largest_difference == 0:
        return _("Output: the same words were written, and every logit is the same to its last digit; they reach {logit}.", **gaps)
    if effect.is_rounding:
        return _(
            "Output: the same words were written. What differs is rounding, because longer sums are added up in another order; "
            "the logits themselves reach {logit}.",
            **gaps,
        )
    return _("Output: this is more than rounding explains: padding changes what this model computes. Logits reach {logit}.", **gaps)


def _card(page: Page, trace: Trace, attention: Attention, allowed: Array | None, name: str, title: str, about: str) -> None:
    """Draws a mask in words and in both forms; only in words if the site has no such mask."""
    with st.container(border=True, key=f"card-mask-{name}"):
        st.markdown(f"**{title}**")
        st.caption(about)
        if allowed is None:
            return
        for column, (form, meaning) in zip(st.columns(2, gap="medium"), _forms().items(), strict=True):
            column.markdown(meaning)
            figure = masks.mask(trace, attention, allowed, form, page.dark)
            column.plotly_chart(figure, width="stretch", config=CONFIG, theme=None, key=f"{name}-{form}", alt=f"{title}: {meaning}")


def _forms() -> dict[masks.Form, str]:
    return {
        "boolean": _("Boolean: may the query (row) look at the key (column)?"),
        "additive": _("Additive: what is added to the score before the softmax."),
    }


def _about_padding(attention: Attention, added: int) -> str:
    if attention.site.stack == "decoder" and attention.site.kind == "self":
        return _("It hides padding from every query. The keys here are written word by word, without padding.")
    if not added:
        return _(
            "Sentences of different lengths are padded to one length, to be computed together; this mask hides the padding from "
            "every query. This sentence has none, so each key may be looked at: pad it above to see the mask at work."
        )
    if attention.site.stack == "encoder":
        return _(
            "It hides the {added} padding tokens from every query. Their own rows are computed too, but nobody looks at them.",
            added=added,
        )
    return _("It hides the {added} padding tokens at the end from every query: nobody may look at them.", added=added)


def _about_causal(attention: Attention) -> str:
    if attention.mask_causal is not None:
        return _(
            "A token may look at itself and at what stands before it, never at what comes after: "
            "that is not written yet, and in training it would give the answer away."
        )
    if attention.site.stack == "encoder":
        return _("This site has none: the whole source is known, so each of its tokens may look at later ones too.")
    return _("This site has none: the whole source is read before the first target token is written; nothing in it is the future.")


def _about_both() -> str:
    return _(
        "A key may be looked at if each mask allows it. In the additive form the masks are summed, and a single −∞ is enough: "
        "e to the power of −∞ is 0, so the softmax gives such a key no weight at all."
    )
