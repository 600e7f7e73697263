"""The page Explore: overview of all heads, and one head in depth."""

import math
from collections.abc import Callable
from html import escape

import streamlit as st

from viz import canvas, export, labels
from viz.canvas import standalone
from viz.page import Page, card, choosing_head, heading, update
from viz.readings import heads
from viz.readings.alike import most_alike
from viz.texts import _
from viz.views import lens, reading, reading_card
from viz.walk import arithmetic


def show(page: Page) -> None:
    """Draws the page."""
    _strips(page)
    canvas.atlas(page.trace, page.attention.site, page.head, page.view.query, key="atlas", chosen=update)
    heat, lines, facts = st.columns([5, 5, 3])
    shown = reading.shown(page)
    with heat, card("heat"):
        reading_card.draw(page, shown)
    with lines, card("lines"):
        st.html(heading(_("Lines"), _("from each token read to the tokens it looked at")))
        if reading_card.fits(page):
            canvas.lines(page.trace, page.attention.site, page.head, page.view.query, key="lines", chosen=update)
        else:
            st.caption(_("Lines are drawn for up to {most} tokens a side.", most=reading_card.LONGEST))
    with facts, card("facts"):
        _facts(page)
    _opened("numbers", _("The numbers of this picture"), ":material/table:", lambda: _numbers(page, shown))
    _opened("heads", _("All heads in numbers"), ":material/leaderboard:", lambda: _all_heads(page))
    _opened("lens", _("What each layer would say: the logit lens"), ":material/search:", lambda: lens.draw(page))
    arithmetic.dialog(page)


def _opened(name: str, title: str, icon: str, draw: Callable[[], None]) -> None:
    """Draws an expander whose content is computed only while it is open."""
    with st.expander(title, icon=icon, key=f"part-{name}", on_change="rerun") as part:
        if part.open:
            draw()


def _strips(page: Page) -> None:
    """Draws the token strips, and sentences about unknown tokens and unfinished outputs."""
    canvas.strips(page.trace, page.attention.site, page.view.query, key="strips", chosen=update)
    for strip in page.trace.tokens.values():
        unknown = [labels.plain(text) for text, not_known in zip(strip.texts, strip.unknown, strict=True) if not_known]
        if unknown:
            gaps = {"language": page.info.languages.get(strip.name, strip.name), "words": ", ".join(unknown)}
            st.caption(
                labels.markdown(_("Not in the {language} vocabulary, so that the model saw <unk> instead: {words}.", **gaps))
            )
    if page.trace.steps and page.trace.steps[-1].chosen.id != page.info.spec["end_id"] and not page.view.target:
        st.caption(labels.markdown(_("The model had not come to an end after {count} tokens.", count=len(page.trace.steps))))


def _facts(page: Page) -> None:
    """Draws statistics of the selected head with explanations; in a single element, since each element slows down a redraw."""
    statistics = heads.head_statistics(page.trace, page.attention, page.head)
    facts = (_fact(explanation, getattr(statistics, name)) for name, explanation in heads.explanations().items())
    notes = [_("Attention says where a head looked, not why the model chose.")]
    if page.attention.site.stack == "decoder":
        notes.insert(0, _("A row is the token that was read; what it looks at serves the token written next: “young → dogs”."))
    if statistics.rows_left_out:
        notes.insert(0, _("{count} rows look at nothing or hold no numbers; they are left out.", count=statistics.rows_left_out))
    small = (f'<p class="small">{escape(note)}</p>' for note in notes)
    st.html("".join((heading(_("This head"), _("weights are probabilities")), *facts, *small)))
    with st.popover(_("Heads like this one"), icon=":material/join_inner:", key="alike", on_change="rerun") as part:
        if part.open:
            _alike(page)


def _fact(explanation: heads.Explanation, value: float) -> str:
    """One statistic of a head as HTML."""
    title, meaning = escape(explanation.title), escape(explanation.meaning)
    number = escape(_("not defined") if math.isnan(value) else f"{value:.2f}")
    return f'<details class="fact"><summary title="{meaning}"><span>{title}</span><b>{number}</b></summary>{meaning}</details>'


def _alike(page: Page) -> None:
    """Draws the heads most similar to the selected one; a click selects one of them."""
    st.caption(_("The Jensen-Shannon divergence of their rows, on average: 0 bits, the same; 1 bit, nothing in common."))
    found = most_alike(page.trace, page.attention, page.head)
    with st.container(gap=None):
        for one in found:
            gaps = {"head": labels.site(one.site, one.head), "bits": one.divergence}
            chosen = {"site": str(one.site), "head": one.head}
            st.button(
                labels.markdown(_("{head}: {bits:.3f} bits", **gaps)),
                key=f"alike-{one.site}-{one.head}",
                type="tertiary",
                on_click=lambda chosen=chosen: update(**chosen),
            )
    if not found:
        st.caption(_("No other head reads the same tokens."))
    st.caption(_("Compared are heads whose rows and columns stand for the same tokens. What they move may differ all the same."))


def _numbers(page: Page, shown: reading.Shown) -> None:
    """Draws the numbers of the picture above as a table, with downloads."""
    if shown.most is None:
        table = export.map_table(page.trace, page.attention, shown.values, shown.keys)
    else:
        table = export.row_table(page.trace, page.attention, shown.values, shown.quantity)
    st.caption(labels.markdown(_("{title}: {quantity}", title=reading_card.title(page, shown), quantity=shown.quantity)))
    if reading_card.fits(page):
        st.dataframe(table, width="stretch")
        if reading_card.opens_cells(page, shown):
            st.caption(_("The same as a figure; the button in its corner saves it as SVG."))
            reading_card.figure(page, shown)
    csv, whole, own = st.columns(3)
    name = export.file_name(page.trace, *reading_card.file_parts(page, shown), ending="csv")
    csv.download_button(
        _("These numbers as CSV"), lambda: export.csv(table), name, "text/csv", icon=":material/download:", on_click="ignore"
    )
    whole.download_button(
        _("The whole run as a trace file"),
        lambda: export.trace_file(page.trace),
        export.file_name(page.trace, ending="trace.safetensors"),
        "application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
    )
    own.download_button(
        _("The atlas as a page of its own"),
        lambda: standalone.page(page.trace, page.attention.site, page.head, page.view.query),
        export.file_name(page.trace, ending="html"),
        "text/html",
        icon=":material/download:",
        on_click="ignore",
        help=_("One HTML file that opens without a server and without a network, with everything that the atlas can do here."),
    )


def _all_heads(page: Page) -> None:
    """Draws a sortable table of all heads' statistics; a click on a row selects the head."""
    table = heads.all_heads(page.trace)
    titles = {name: explanation.title for name, explanation in heads.explanations().items()}
    columns = {name: st.column_config.NumberColumn(title, format="%.3f") for name, title in titles.items()}
    names = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head"), "rows": _("rows")}
    names |= {"rows_left_out": _("rows left out")}
    columns |= {name: st.column_config.Column(title) for name, title in names.items()}
    st.dataframe(table, column_config=columns, hide_index=True, selection_mode="single-row", **choosing_head(table, "all-heads"))
