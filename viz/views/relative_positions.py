"""The part of the page Positions for stacks that add no table: rotary positions, and learned numbers for each distance."""

from collections.abc import Callable, Mapping

import numpy as np
import streamlit as st

from model.engine.api import Explain
from model.errors import HeadlightError
from model.requests.network import ROTARY
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array, Attention
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.panels import Panel
from viz.session.state import Page, bind
from viz.views import position_panels as panels
from viz.widgets import drawn_panels
from viz.widgets.cards import by_pointer, card, choose_picture, one_screen, say


def show(page: Page, stack: str, kind: str) -> bool:
    """Draws how positions enter the self-attention of a stack; False: its numbers are not known.

    Args:
        kind: the kind of its positions, one of TABLELESS.
    """
    sites = {site: own for site, own in page.trace.attention.items() if site.stack == stack and site.kind == "self"}
    if not sites or page.info.recorded:
        return False
    chosen = page.attention.site in sites
    own, head = sites[page.attention.site if chosen else next(iter(sites))], page.head if chosen else 0
    for name in ("rotation",) if kind in ROTARY else ("biases", "wordless"):
        if (table := panels.tensor(page, f"{name}/{own.site}")) is not None:
            break
    else:
        return False
    if name == "rotation":
        (_one_picture if page.view.big else _rotary)(page, own, head, table)
    else:
        with one_screen() if page.view.big else card("biases", "content"):
            drawn = panels.of_biases(page, own, head, table, name if kind != "relative" else "learned")
            drawn_panels.draw(page, drawn, "biases-chart", fills=True)
    return True


def _one_picture(page: Page, own: Attention, head: int, rotation: Array) -> None:
    """Draws the picture of rotary positions that fills the screen in big mode, and the choice among them."""
    names = {"arrows": _("Arrows"), "score": _("The score at other distances"), "waves": _("Wavelength of each pair")}
    of_cell: Mapping[str, Callable[[Page, Attention, Explanation, Array], Panel]]
    of_cell = {"arrows": panels.of_arrows, "score": panels.of_score}
    with one_screen():
        picture = choose_picture(names | {"similarity": _("Similarity between positions")})
        if picture == "waves":
            _waves(page, own, rotation)
        elif picture == "similarity":
            drawn_panels.draw(page, panels.of_angles(rotation), "rotary-alike-chart")
        elif (explained := _explained(page, own, head, *_cell(page, own, head))) is not None:
            key = {"arrows": "rotary-arrows", "score": "rotary-score-chart"}[picture]
            drawn_panels.draw(page, of_cell[picture](page, own, explained, rotation), key, fills=True)


def _rotary(page: Page, own: Attention, head: int, rotation: Array) -> None:
    """Draws what rotary positions do to a head."""
    waves = 2 * np.pi / rotation[:, 2]
    with card("rotary", "content"):
        title = _("Rotary positions: queries and keys are rotated, nothing is added")
        st.markdown(f"**{title}**")
        st.caption(
            _(
                "Each head rotates {columns} columns of its queries and keys in pairs: the first pair once in {shortest:.1f} "
                "positions, the last one once in {longest:,.0f}. A score then depends on how far query and key are apart, and not "
                "on where they are.",
                columns=2 * len(rotation),
                shortest=waves[0],
                longest=waves[-1],
            )
        )
        explained = _explained(page, own, head, *_chosen_cell(page, own, head))
        if explained is not None:
            drawn_panels.draw_words(arrows := panels.of_arrows(page, own, explained, rotation))
            st.html(by_pointer(_("Point at an arrow to see its actual length."), _("Tap an arrow to see its actual length.")))
            drawn_panels.draw_content(page, arrows, "rotary-arrows")
    left, right = st.columns(2, gap="medium")
    if explained is not None:
        with left, card("rotary-score"):
            drawn_panels.draw(page, panels.of_score(page, own, explained, rotation), "rotary-score-chart")
    with right, card("rotary-waves"):
        _waves(page, own, rotation)
    with card("alike", "content"):
        drawn_panels.draw(page, panels.of_angles(rotation), "rotary-alike-chart")


def _waves(page: Page, own: Attention, rotation: Array) -> None:
    """Draws the wavelength of each pair of columns."""
    waves = panels.of_waves(rotation, len(page.trace.tokens[own.query_tokens]))
    drawn_panels.draw(page, waves, "rotary-waves-chart", fills=True)


def _explained(page: Page, own: Attention, head: int, query: int, key: int) -> Explanation | None:
    """The calculation of a cell; None: it cannot be had, and a sentence says why."""
    try:
        return page.engine.ask(Explain(page.view.request(), str(own.site), head, query, key))
    except HeadlightError as error:
        say(error_message(error))
        return None


def _cell(page: Page, own: Attention, head: int) -> tuple[int, int]:
    """The chosen query and key, as far as the site has them."""
    queries, keys = own.mask.shape
    query, key = page.view.query if page.view.query < queries else -1, page.view.key if page.view.key < keys else -1
    return panels.cell_of(query, key, own.weights[head])


def _chosen_cell(page: Page, own: Attention, head: int) -> tuple[int, int]:
    """Draws the choice of a query and a key."""
    rows, columns = tokens.queries(page.trace, own), tokens.keys(page.trace, own)
    query, key = _cell(page, own, head)
    left, right = st.columns(2)
    for column, title, field, names, now in ((left, _("Query"), "query", rows, query), (right, _("Key"), "key", columns, key)):
        tied = bind(field)
        st.session_state[tied["key"]] = now
        numbered = [f"{place} · {name}" for place, name in enumerate(names, start=1)]
        column.selectbox(title, range(len(names)), format_func=numbered.__getitem__, **tied)
    return query, key
