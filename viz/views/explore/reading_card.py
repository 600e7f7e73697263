"""The card of Explore with one reading of the selected site: control, picture and explanation."""

from functools import partial

import streamlit as st

from model.spec.edits import Silence
from model.trace.unusual import about_head
from viz import canvas
from viz.canvas.wire import overviews
from viz.i18n.translate import _, said
from viz.labels import tokens
from viz.metrics.catalogue import catalogue
from viz.metrics.sinks import SMALL_VALUE, Sink, sink
from viz.session.state import Page, bind, update
from viz.url.parsers import READINGS
from viz.views.explore import panels
from viz.views.explore.reading import LONGEST, Shown, fits, hides, title, with_values
from viz.widgets.cards import heading
from viz.widgets.drawn_panels import draw_content


def draw(page: Page, shown: Shown, cells: bytes | None) -> None:
    """Draws the card's content.

    Args:
        cells: the scene of the head's weights, if it is drawn.
    """
    gaps = {
        "query": tokens.query_axis(page.trace, page.attention.site),
        "key": tokens.key_axis(page.trace, page.attention.site),
    }
    st.html(heading(title(page, shown), _("{query} ↓ · {key} →", **gaps), help_of="heat"))
    _controls(page, shown)
    if fits(page):
        if cells is not None:
            canvas.draw("cells", cells, key="heat-cells", chosen=partial(update, site=str(page.attention.site), head=page.head))
        else:
            draw_content(page, panels.of_reading(page, shown), "heatmap", printable=False)
    else:
        queries, keys = page.attention.mask.shape
        sentence = _(
            "This map has {queries} × {keys} weights; at most {most} × {most} are drawn here. Enlarge the head in the "
            "overview to see every weight.",
            queries=queries,
            keys=keys,
            most=LONGEST,
        )
        st.info(sentence, icon=":material/info:")
    for note in (*shown.notes, *_about_the_head(page, shown)):
        st.caption(tokens.markdown(note))


def _controls(page: Page, shown: Shown) -> None:
    titles = {name: reading.title for name, reading in catalogue(page.attention.site).items()}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.selectbox(
            _("View"),
            READINGS,
            format_func=titles.__getitem__,
            label_visibility="collapsed",
            width=190,
            **bind("reading", key=-1),
        )
        with st.popover(_("What is this?"), type="tertiary", key="about-reading", on_change="rerun") as part:
            if part.open:
                _explain(shown)
    if shown.reading.name == "writes":
        return
    with st.container(horizontal=True, gap="small"):
        _switch(page, "special", _("Leave out special tokens"), "widget:hide")
        _switch(page, "first", _("Leave out the first token"), "widget:hide-first")


def _switch(page: Page, what: str, label: str, key: str) -> None:
    """A switch of the parameter `hide`. Its default, which the run decides, is not written into the link."""
    default = overviews.leaves_out("", page.trace)
    st.session_state[key] = hides(page) == what

    def switch() -> None:
        wanted = what if st.session_state[key] else "none"
        update(hide="" if wanted == default else wanted)

    st.toggle(label, key=key, on_change=switch)


def _explain(shown: Shown) -> None:
    """Draws the formula, what the reading is, and what it is not."""
    st.markdown(f"**{tokens.markdown(shown.reading.title)}**")
    for line in shown.reading.formula:
        st.latex(line)
    st.markdown(f":small[{tokens.markdown(shown.reading.meaning)}]")
    st.markdown(f":small[{tokens.markdown(shown.reading.caution)}]")


def _about_the_head(page: Page, shown: Shown) -> list[str]:
    """Sentences about the selected head: that it is silenced, has weights that are no probabilities, has an attention sink."""
    if not shown.reading.of_head:
        return []
    edits, place = page.view.request().edits, (str(page.attention.site), page.head)
    notes = [] if page.trace.recorded is None else [said(each) for each in about_head(page.attention, page.head)]
    if any(isinstance(edit, Silence) and edit.by == "zeros" and edit.covers(*place) for edit in edits):
        notes.append(_("This head is silenced: its weights were computed, but its output was replaced by zeros."))
    found = sink(page.trace, page.attention, page.head)
    if found is not None:
        kept = with_values(page)
        found = found if isinstance(kept, str) else sink(page.trace, kept, page.head) or found
        notes.append(_about_sink(page, found))
    return notes


def _about_sink(page: Page, found: Sink) -> str:
    strip = page.trace.tokens[page.attention.key_tokens]
    gaps = {"token": tokens.token(strip, found.key), "key": found.key + 1, "share": found.share}
    if found.value is None:
        return _("On average, {share:.0%} of a row’s weight goes to “{token}” (key {key}).", **gaps)
    gaps["value"] = found.value
    if found.value < SMALL_VALUE:
        return _(
            "Attention sink: on average, {share:.0%} of a row’s weight goes to “{token}” (key {key}), but the value "
            "vector there is only {value:.2f} times as long as the average. The head rests there: this weight moves "
            "little.",
            **gaps,
        )
    return _(
        "On average, {share:.0%} of a row’s weight goes to “{token}” (key {key}). The value vector there is "
        "{value:.2f} times as long as the average, so this weight does move something.",
        **gaps,
    )
