"""The page Masks: which keys each query may attend to at the selected site, and a test that padding changes nothing."""

import numpy as np
import streamlit as st

from model.engine.api import Run
from model.errors import HeadlightError
from model.trace.types import Array, Attention, Site, Trace
from viz.export import tables
from viz.feature import draw_parts
from viz.i18n.translate import _, error_message, join_sentences, localized, number
from viz.labels import tokens
from viz.labels.tokens import MaskForm
from viz.metrics.padding import PaddingEffect, padding_effect
from viz.session.state import Page, bind, update
from viz.views import mask_panels
from viz.views.mask_panels import of_mask, reads_padding
from viz.widgets import drawn_panels, numeric_tables
from viz.widgets.cards import card, choose_picture, expander_state, heading, one_screen, say

SHOWN_PADDING = 4
"""Padding tokens after the source until the slider is moved, so that the padding mask shows something."""


def show(page: Page) -> None:
    """Draws the page."""
    pads = not _why_not(page)
    if page.view.big:
        _one_picture(page, _run_padded(page) if pads and page.trace.recorded is None else None)
        return
    where, *between, how = st.columns([7, 4, 3] if pads else [8, 3], gap="medium")
    with where:
        tied = bind("site", head=0, query=-1)
        st.session_state[tied["key"]] = page.view.site
        sites = [str(site) for site in page.trace.attention]
        st.selectbox(_("Attention"), sites, format_func=lambda text: tokens.site(Site.parse(text)), **tied)
    padded = None
    if pads:
        with between[0]:
            padded = _padded(page)
    with how:
        form = _chosen_form()
    if page.trace.recorded is not None:
        with card("mask-both"):
            attention, named = page.attention, ("both", _("The mask of this attention layer"))
            _mask(page, page.trace, attention, attention.mask, named, form, mask_panels.about_one())
        draw_parts("masks", page, form)
        _tables(page.trace, page.attention)
        return
    trace = padded or page.trace
    attention = trace.at(page.attention.site)
    added = len(trace.tokens["source"]) - len(page.trace.tokens["source"])
    first, second = st.columns(2, gap="medium")
    with first, card("mask-causal", "stretch" if attention.mask_causal is not None else "content"):
        named = "causal", _("Causal mask")
        _mask(page, trace, attention, attention.mask_causal, named, form, mask_panels.about_causal(attention))
    with second, card("mask-both"):
        named = "both", _("Both combined: the mask of this layer")
        _mask(page, trace, attention, attention.mask, named, form, mask_panels.about_both())
    third, last = st.columns(2, gap="medium") if attention.mask_causal is not None else (first, second)
    read = reads_padding(trace, attention)
    with third, card("mask-padding", "stretch" if read.mask_padding is not None else "content"):
        about = mask_panels.about_padding(attention, added, page.info)
        if read is not attention:
            reads = _("The padding mask of the attention that reads the source: {site}.", site=tokens.site(read.site))
            about = join_sentences([about, reads])
        _mask(page, trace, read, read.mask_padding, ("padding", _("Padding mask")), form, about)
    with last, card("padding-effect", "content"):
        _say_what_padding_did(page, padded)
    draw_parts("masks", page, form)
    _tables(trace, attention)


def _one_picture(page: Page, padded: Trace | None) -> None:
    """Draws the mask that fills the screen in big mode, and the choice among those that the site has."""
    trace = padded or page.trace
    attention = trace.at(page.attention.site)
    masks = {"combined": attention.mask, "causal": attention.mask_causal, "padding": attention.mask_padding}
    drawn = {name: allowed for name, allowed in masks.items() if allowed is not None}
    titles = {"combined": _("Both combined: the mask of this layer"), "causal": _("Causal mask"), "padding": _("Padding mask")}
    with one_screen():
        name = choose_picture({name: titles[name] for name in drawn})
        title, allowed = titles[name], drawn[name]
        form: MaskForm = st.session_state.get("mask-form") or "boolean"
        panel = of_mask(trace, attention, allowed, (name, title), form)
        st.html(heading(panel.title))
        drawn_panels.draw_content(page, panel, f"mask-{name}")


def _chosen_form() -> MaskForm:
    """Draws the control for how the masks are written."""
    signs: dict[MaskForm, str] = {"boolean": "✓ ✗", "additive": "0 −∞"}
    chosen = st.segmented_control(
        _("Show as"), list(signs), format_func=signs.__getitem__, default="boolean", required=True, key="mask-form"
    )
    form: MaskForm = chosen or "boolean"
    st.caption(mask_panels.forms()[form])
    return form


def _padded(page: Page) -> Trace | None:
    """Draws the control that pads the source; returns the padded run, None if there is no padding or it failed."""
    length, longest = len(page.trace.tokens["source"]), page.info.max_source
    _slider(length, longest, page.view.pad_to or min(length + SHOWN_PADDING, longest))
    return _run_padded(page)


def _run_padded(page: Page) -> Trace | None:
    """The run with the padding that the view asks for; None if there is none or it failed, which a sentence says."""
    length, longest = len(page.trace.tokens["source"]), page.info.max_source
    asked = page.view.pad_to or min(length + SHOWN_PADDING, longest)
    try:
        return page.engine.ask(Run(page.view.request(pad_to=asked))) if asked > length or page.view.pad_to > longest else None
    except HeadlightError as error:
        say(error_message(error))
        return None


def _why_not(page: Page) -> str:
    """Why this source cannot be padded; empty if it can."""
    spec, longest = page.info.spec, page.info.max_source
    if page.info.recorded:
        return _("This is a recorded run, so no padding can be added: the masks are those of the recording.")
    if spec["encoder"] is None:
        return _("A language model continues right after its prompt, so the prompt is not padded here.")
    if page.info.reads == "image":
        return _("An image has no padding: each of its patches is read.")
    if page.info.reads == "sound":
        return _("A sound has no padding: the silence that fills it up is read, too.")
    if page.info.reads == "features":
        return _("This model reads vectors, none of which stands for padding, so nothing is padded here.")
    if spec.get("pad_id", 0) is None and spec.get("source_pad_id") is None:
        return _("This model has no padding token (or it was not specified), so nothing is padded here.")
    if len(page.trace.tokens["source"]) >= longest:
        return _("The sentence already fills all {longest} encoder positions; there is no room for padding.", longest=longest)
    return ""


def _slider(length: int, longest: int, asked: int) -> None:
    """Draws the slider for the number of source positions; its lower end means no padding."""
    key = "widget:pad_to"
    st.session_state[key] = min(max(asked, length), longest)
    st.slider(
        _("Pad the source to this many tokens (now {length})", length=length),
        length,
        longest,
        key=key,
        on_change=lambda: update(pad_to=st.session_state[key]),
    )


def _say_what_padding_did(page: Page, padded: Trace | None) -> None:
    """Draws the comparison of both runs, in numbers and in words."""
    st.markdown("**" + _("Does padding change the output?") + "**")
    if reason := _why_not(page):
        st.caption(reason)
        return
    if padded is None:
        st.caption(_("Move the slider to run the sentence again with padding and compare the two runs."))
        return
    effect = padding_effect(page.trace, padded)
    with st.container(horizontal=True, gap="medium"):
        st.metric(_("largest weight on padding"), _power_of_ten(effect.largest_weight), width="content")
        if effect.rows_without:
            measured = _power_of_ten(effect.largest_difference) if effect.rows else _("none")
            st.metric(_("largest logit difference"), measured, width="content")
            compared = _("{rows} of {all_rows}", rows=effect.rows, all_rows=effect.rows_without)
            st.metric(_("rows compared"), compared, width="content")
    st.caption(_about_weights(effect))
    st.caption(_about_output(effect))


def _power_of_ten(value: float) -> str:
    """A small number in scientific notation: 2.9·10⁻⁶."""
    if value == 0:
        return _("exactly 0")
    digits, exponent = localized(f"{value:.1e}").split("e")
    return digits if int(exponent) == 0 else f"{digits}·10{str(int(exponent)).translate(_RAISED)}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _about_weights(effect: PaddingEffect) -> str:
    if effect.largest_weight == 0:
        return _("Weights: no head that reads the source gives any weight to the padding.")
    return _("Weights: at least one head that reads the source attends to the padding.")


def _about_output(effect: PaddingEffect) -> str:
    numbers = {"rows": effect.rows, "all_rows": effect.rows_without, "logit": number(effect.largest_logit, ".1f")}
    if not effect.rows_without:
        return _("Output: this model generates nothing, so there are no logits to compare.")
    if effect.rows < effect.rows_without:
        return _("Output: the two runs differ after row {rows} of {all_rows}; only the rows up to there are compared.", **numbers)
    if effect.largest_difference == 0:
        return _("Output: identical, down to the last digit of every logit (logits reach {logit}).", **numbers)
    if effect.is_rounding:
        return _(
            "Output: the same words. The remaining difference is rounding error, because longer sums are added in a "
            "different order (logits reach {logit}).",
            **numbers,
        )
    return _(
        "Output: the difference is larger than rounding can explain: padding does change what this model computes (logits "
        "reach {logit}).",
        **numbers,
    )


def _mask(
    page: Page, trace: Trace, attention: Attention, allowed: Array | None, named: tuple[str, str], form: MaskForm, about: str
) -> None:
    """Draws a mask in words and as a picture; only in words if the site has no such mask."""
    name, title = named
    if allowed is None:
        st.markdown(f"**{title}**")
        st.caption(about)
        return
    drawn_panels.draw(page, of_mask(trace, attention, allowed, named, form, about), f"mask-{name}")


def _tables(trace: Trace, attention: Attention) -> None:
    """Draws the masks of the site as tables, which the keyboard reaches; only while they are open."""
    names = {
        _("Causal mask"): attention.mask_causal,
        _("Padding mask"): attention.mask_padding,
        _("Both combined: the mask of this layer"): attention.mask,
    }
    with st.expander(_("The masks as tables"), icon=":material/table:", **expander_state("part-masks")) as part:
        for title, allowed in names.items() if part.open else ():
            if allowed is not None:
                st.caption(title)
                signs = np.where(np.broadcast_to(allowed, attention.mask.shape), "✓", "✗")
                numeric_tables.draw(tables.map_table(trace, attention, signs, range(signs.shape[1])))
