"""Explore: every head at a glance, and one of them in depth."""

import math

import streamlit as st

from viz import canvas, export, labels, readings
from viz.figures.frame import CONFIG
from viz.figures.heatmap import head_weights
from viz.page import Page, card
from viz.texts import _


def show(page: Page) -> None:
    """Draws the page."""
    _strips(page)
    _follow(page, canvas.atlas(page.trace, page.attention.site, page.head, page.view.query, key="atlas"))
    heat, lines, facts = st.columns([5, 5, 3])
    with heat, card("heat"):
        _heading(labels.site(page.attention.site, page.head), _axes(page))
        figure = head_weights(page.trace, page.attention, page.head, page.dark, page.view.query)
        st.plotly_chart(figure, width="stretch", config=CONFIG, theme=None, key="heatmap")
    with lines, card("lines"):
        _heading(_("Lines"), _("from each token read to the tokens it looked at"))
        _follow(page, canvas.lines(page.trace, page.attention.site, page.head, page.view.query, key="lines"))
    with facts, card("facts"):
        _facts(page)
    _numbers(page)
    _all_heads(page)


def _strips(page: Page) -> None:
    """The sentence and what was written, and sentences about what the model did not know or not finish."""
    _follow(page, canvas.strips(page.trace, page.attention.site, page.view.query, key="strips"))
    for strip in page.trace.tokens.values():
        unknown = [labels.plain(text) for text, not_known in zip(strip.texts, strip.unknown, strict=True) if not_known]
        if unknown:
            gaps = {"language": page.info.languages.get(strip.name, strip.name), "words": ", ".join(unknown)}
            st.caption(
                labels.markdown(_("Not in the {language} vocabulary, so that the model saw <unk> instead: {words}.", **gaps))
            )
    if page.trace.steps and page.trace.steps[-1].chosen.id != page.info.spec["end_id"] and not page.view.target:
        st.caption(labels.markdown(_("The model had not come to an end after {count} tokens.", count=len(page.trace.steps))))


def _follow(page: Page, selection: canvas.Selection) -> None:
    """Lets the state follow what was chosen in a drawing."""
    if changes := selection.changes():
        page.change(**changes)


def _heading(title: str, subtitle: str) -> None:
    st.markdown(f"**{labels.markdown(title)}**")
    st.caption(labels.markdown(subtitle))


def _axes(page: Page) -> str:
    return _(
        "{query} ↓ · {key} →",
        query=labels.query_axis(page.trace, page.attention.site),
        key=labels.key_axis(page.trace, page.attention.site),
    )


def _facts(page: Page) -> None:
    """The selected head in a few numbers, each explained on hover."""
    statistics = readings.head_statistics(page.trace, page.attention, page.head)
    _heading(_("This head"), _("weights are probabilities"))
    for name, explanation in readings.explanations().items():
        value = getattr(statistics, name)
        with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
            st.markdown(f":small[{labels.markdown(explanation.title)}]", help=labels.markdown(explanation.meaning), width="content")
            number = _("not defined") if math.isnan(value) else f"{value:.2f}"
            st.markdown(f":small[**{labels.markdown(number)}**]", width="content")
    if statistics.rows_left_out:
        st.caption(_("{count} rows look at nothing or hold no numbers; they are left out.", count=statistics.rows_left_out))
    if page.attention.site.stack == "decoder":
        st.caption(_("A row is the token that was read; what it looks at serves the token written next: “young → dogs”."))
    st.caption(_("Attention says where a head looked, not why the model chose."))


def _numbers(page: Page) -> None:
    """The selected head's numbers as a table and as files."""
    table = export.head_table(page.trace, page.attention, page.head)
    with st.expander(_("The numbers of this head"), icon=":material/table:"):
        st.dataframe(table, width="stretch")
        csv, whole = st.columns(2)
        name = export.file_name(page.trace, str(page.attention.site), f"head-{page.head + 1}", ending="csv")
        csv.download_button(
            _("This head as CSV"), export.csv(table), name, "text/csv", icon=":material/download:", on_click="ignore"
        )
        whole.download_button(
            _("The whole run as a trace file"),
            lambda: export.trace_file(page.trace),
            export.file_name(page.trace, ending="trace.safetensors"),
            "application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
        )


def _all_heads(page: Page) -> None:
    """Every head's statistics in a table that can be sorted; a click on a row selects the head."""
    with st.expander(_("All heads in numbers"), icon=":material/leaderboard:"):
        table = readings.all_heads(page.trace)
        titles = {name: explanation.title for name, explanation in readings.explanations().items()}
        columns = {name: st.column_config.NumberColumn(title, format="%.3f") for name, title in titles.items()}
        names = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head"), "rows": _("rows")}
        names |= {"rows_left_out": _("rows left out")}
        columns |= {name: st.column_config.Column(title) for name, title in names.items()}
        event = st.dataframe(
            table, column_config=columns, hide_index=True, on_select="rerun", selection_mode="single-row", key="all-heads"
        )
        chosen = [table.index[row] for row in event.selection.rows]
        if chosen and chosen != st.session_state.get("all-heads/seen"):
            st.session_state["all-heads/seen"] = chosen
            page.change(site=chosen[0][0], head=int(chosen[0][1]))
