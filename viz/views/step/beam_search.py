"""The beam search of a run: its tree, its final hypotheses and all numbers. One hypothesis is shown on every page."""

from functools import partial

import pandas as pd
import streamlit as st

from model.trace.beam_tree import hypotheses, path
from model.trace.types import Trace
from viz import canvas
from viz.canvas.scenes import beam_tree
from viz.feature import draw_parts
from viz.i18n.translate import _
from viz.labels import tokens
from viz.panels import OfRun, Picture
from viz.session.state import Page, bind, decimals, update
from viz.widgets import download, numeric_tables
from viz.widgets.cards import card, expander_state

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
        with st.expander(_("The search as a table"), icon=":material/table:", **expander_state("part-search")) as part:
            if part.open:
                _numbers(page)


def draw_tree(page: Page) -> None:
    """Draws the tree of the search; a click on a finished hypothesis shows it, unless the run is recorded."""
    recorded = page.info.recorded
    shown = int((page.trace.request.get("decoding") or {}).get("hypothesis", 0)) if recorded else page.view.hypothesis
    there = 0 if recorded else len(hypotheses(page.trace.tree))
    canvas.draw("tree", beam_tree.scene(page.trace, shown), key="tree", chosen=partial(_show, there))


def _show(count: int, **fields: str | int) -> None:
    """Shows another of the `count` final hypotheses, if it exists."""
    if fields.get("hypothesis") in range(count):
        update(**fields, **ANOTHER)


def _in_words(trace: Trace, form: str, rank: int) -> str:
    """A hypothesis as one line of text."""
    place = hypotheses(trace.tree)[rank]
    node = trace.tree[place]
    gaps = {"rank": rank + 1, "text": _text(trace, place)}
    gaps |= {"mean": tokens.number(node.mean, form), "total": tokens.number(node.total, form)}
    return _("{rank} · {text} · {mean} per token, {total} in total", **gaps)


def _text(trace: Trace, place: int) -> str:
    return tokens.line(trace.tree[one].text for one in path(trace.tree, place))


def table(trace: Trace) -> pd.DataFrame:
    """Table of all nodes of the tree in search order: texts so far, log-probabilities, fate and rank."""
    fates = {"kept": _("kept"), "finished": _("finished"), "pruned": _("pruned")}
    rows = [
        {
            _("step"): node.step + 1,
            _("hypothesis so far"): _text(trace, node.parent),
            _("token"): tokens.word(node.text),
            _("log-probability"): node.log_probability,
            _("total"): node.total,
            _("per token"): node.mean,
            _("outcome"): fates[node.fate],
            _("hypothesis"): node.rank + 1 if node.rank >= 0 else None,
        }
        for node in trace.tree
    ]
    return pd.DataFrame(rows).astype({_("hypothesis"): "Int64"})


def _numbers(page: Page) -> None:
    trace = page.trace
    found = table(trace)
    numeric_tables.draw(found, hide_index=True, key="search-numbers")
    download.csv(found, trace, "search", label=_("Download the search as CSV"), key="search-csv")
    printed = OfRun("tree", trace, page.attention.site, page.head, hypothesis=page.view.hypothesis)
    draw_parts("picture", Picture("tree", trace, lambda: [printed]))
