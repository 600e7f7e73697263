"""The beam search of a run: its tree, its final hypotheses and all numbers. One hypothesis is shown on every page."""

from functools import partial

import streamlit as st

from model.trace.beam_tree import hypotheses
from model.trace.types import Trace
from viz.feature import draw_parts
from viz.i18n.translate import _
from viz.labels import tokens
from viz.panels import OfRun, Picture
from viz.session.state import Page, bind, decimals, update
from viz.views.step import panels
from viz.widgets import download
from viz.widgets.cards import card, expander_state
from viz.widgets.drawn_panels import draw_content

ANOTHER = {"query": -1, "key": -1, "step": -1}
"""Fields that another hypothesis resets: they name rows of the old one."""


def draw(page: Page) -> None:
    """Draws the search, if the run has one; every page then shows the chosen hypothesis."""
    if not page.trace.tree:
        return
    with card("search", "content"):
        st.markdown("**" + _("The beam search") + "**")
        st.caption(
            _(
                "Each column is a step and each box a hypothesis so far, with its total log-probability. Finished "
                "hypotheses are numbered, best log-probability per token first; the highlighted one is shown on every "
                "page."
            )
        )
        if page.info.recorded:
            st.caption(_("This is a recorded run: it holds the attention of only one hypothesis, the highlighted one."))
        else:
            st.selectbox(
                _("Hypothesis shown"),
                range(len(hypotheses(page.trace.tree))),
                format_func=partial(_in_words, page.trace, decimals(3)),
                **bind("hypothesis", **ANOTHER),
            )
        draw_tree(page)
        opened = expander_state("part-search", page.view.opened, ("search",))
        with st.expander(_("The search as a table"), icon=":material/table:", **opened) as part:
            if part.open:
                _numbers(page)


def draw_tree(page: Page) -> None:
    """Draws the tree of the search; a click on a finished hypothesis shows it, unless the run is recorded."""
    count = 0 if page.info.recorded else len(hypotheses(page.trace.tree))
    draw_content(page, panels.tree(page), "tree", chosen=partial(_show, count), printable=False)


def _show(count: int, **fields: str | int) -> None:
    """Shows another of the `count` final hypotheses, if it exists."""
    if fields.get("hypothesis") in range(count):
        update(**fields, **ANOTHER)


def _in_words(trace: Trace, form: str, rank: int) -> str:
    """A hypothesis as one line of text."""
    index = hypotheses(trace.tree)[rank]
    node, text = trace.tree[index], panels.text_of_hypothesis(trace, index)
    mean, total = tokens.number(node.mean, form), tokens.number(node.total, form)
    return _("{rank} · {text} · {mean} per token, {total} in total", rank=rank + 1, text=text, mean=mean, total=total)


def _numbers(page: Page) -> None:
    trace = page.trace
    draw_content(page, panels.of_search(trace), "search-numbers")
    table = panels.table_of_search(trace)
    download.csv(table, trace, "search", label=_("Download the search as CSV"), key="search-csv")
    printed = OfRun("tree", trace, page.attention.site, page.head, hypothesis=page.view.hypothesis)
    draw_parts("picture", Picture("tree", trace, lambda: [printed]))
