"""Paths: what each path between two heads carries of what tells the sentence from a corrupted one."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import BadSetting, HeadlightError, phrase
from model.features.circuit.circuits import SIDES, CircuitGraph, PathEffects, Side, mean_of, read_pairs
from model.requests.inputs import Given
from viz.features.circuit import path_panels as panels
from viz.i18n.translate import _, error_message, number
from viz.labels import tokens
from viz.panels import NotDrawable
from viz.session import access, patient_engine
from viz.session.state import Page, bind, update
from viz.widgets import download, drawn_panels, numeric_tables
from viz.widgets.cards import panel, say
from viz.widgets.clickable_figures import choosing_point

MOST_PAIRS = 32
"""Pairs of a file that are measured here."""


def draw(page: Page, graph: CircuitGraph) -> None:
    """Draws the corrupted sentence, or a file of pairs, and on demand what each path carries."""
    if not page.trace.steps:
        return
    with panel("paths"):
        st.markdown("**" + _("Path by path: what distinguishes this sentence from a corrupted one") + "**")
        left, right = st.columns(2)
        with left:
            _corrupted("visible")
        with right:
            _token(page)
        shared = _shared(page)
        try:
            pairs = _pairs(page)
        except HeadlightError as error:
            say(error_message(error))
            return
        if not _wanted(page, graph, len(pairs)):
            return
        with patient_engine.show_pending():
            if not (measured := _measured(page, pairs, shared)):
                return
            if len(pairs) > 1:
                _of_pairs(pairs, measured)
            _found(page, mean_of(measured), len(pairs))


def draw_picture(page: Page, graph: CircuitGraph, kept: bool) -> None:
    """Draws one picture alone, as large as the screen of a projector, with what starts the measurement of this sentence.

    Args:
        kept: how much of the run the strongest paths carry, instead of the map of paths.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        _corrupted("collapsed")
        wanted = _wanted(page, graph, len(panels.pair_of_page(page)))
    if not wanted:
        return
    with patient_engine.show_pending():
        if not (measured := _measured(page, panels.pair_of_page(page), shared=False)):
            return
        effects = mean_of(measured)
        if kept:
            drawn_panels.draw_content(page, panels.of_kept(effects), "paths-kept", fills=True)
        else:
            st.markdown(tokens.markdown(panels.sentence(page, effects, 1)))
            _map(page, effects, _side(effects))


def _measured(page: Page, pairs: Sequence[tuple[Given, str]], shared: bool) -> list[PathEffects]:
    """What each path carries in each pair; none, and a sentence, where that cannot be measured."""
    try:
        return [page.engine.ask(panels.question(page, clean, corrupted, shared)) for clean, corrupted in pairs]
    except HeadlightError as error:
        say(error_message(error))
        return []


def _corrupted(label: Literal["visible", "collapsed"]) -> None:
    """Draws the box of the corrupted sentence."""
    st.text_input(
        _("Corrupted sentence"),
        help=_("A sentence with the same number of tokens, changed so that the output changes."),
        placeholder=_("Corrupted sentence") if label == "collapsed" else None,
        label_visibility=label,
        **bind("corrupted"),
    )


def _pairs(page: Page) -> list[tuple[Given, str]]:
    """Clean and corrupted texts: those of the page, then those of a file, whose uploader this draws.

    Raises:
        BadSetting: the file is none of pairs, or has too many.
    """
    page_pair = panels.pair_of_page(page)
    if access.is_public():
        return page_pair
    file = st.file_uploader(
        _("Or further pairs: a text file, a clean and a corrupted sentence with a tab between them on each line"),
        type=["tsv", "txt"],
        max_upload_size=1,
        key="paths-file",
    )
    if file is None:
        return page_pair
    more = read_pairs(file.getvalue(), file.name)
    if len(more) > MOST_PAIRS:
        allowed = phrase("at most {most:,} pairs; python -m model paths takes more", most=MOST_PAIRS)
        raise BadSetting(name=file.name, found=f"{len(more):,}", allowed=allowed)
    return page_pair + list(more)


def _wanted(page: Page, graph: CircuitGraph, pairs: int) -> bool:
    """Draws the switch that starts the measurement, and what it costs."""
    heads = np.array([part.kind == "head" for part in graph.parts])
    count = int((~np.isnan(graph.used[:, :, heads])).sum())
    wanted = st.toggle(
        _("Measure all paths ({count:,})", count=count * max(1, pairs)),
        key="paths-shown",
        disabled=not pairs,
        help=_("Runs the sentence once for each path. The page shows the progress, and you can stop it."),
    )
    minutes = round(count * pairs * page.trace.model["milliseconds"] / 60_000)
    if minutes and not wanted:
        st.caption(_("At the speed of the run shown this takes up to {minutes:,} min.", minutes=minutes))
    return wanted


def _of_pairs(pairs: Sequence[tuple[Given, str]], measured: Sequence[PathEffects]) -> None:
    """Draws what was measured in each pair."""
    rows = [
        (
            str(clean),
            corrupted,
            tokens.plain(effects.tokens[effects.token]),
            tokens.plain(effects.other_text),
            effects.clean,
            effects.corrupted,
        )
        for (clean, corrupted), effects in zip(pairs, measured, strict=True)
    ]
    columns = [_("clean"), _("corrupted"), _("token"), _("minus"), _("clean run"), _("corrupted run")]
    with st.expander(_("All pairs"), icon=":material/table:"):
        numeric_tables.draw(pd.DataFrame(rows, columns=columns), hide_index=True)


def _token(page: Page) -> None:
    """Draws the choice of the token whose logit is measured."""
    written = {step.index: f"{step.index + 1} {tokens.word(step.chosen.text)}" for step in page.trace.steps}
    tied = bind("step")
    st.session_state[tied["key"]] = min(max(page.view.step, 0), len(written) - 1)
    st.selectbox(_("Token"), list(written), format_func=written.__getitem__, **tied)


def _shared(page: Page) -> bool:
    """Draws, where heads share keys, whether a path leads to all of them."""
    stacks = (page.info.spec.get(name) or {} for name in ("encoder", "decoder"))
    if all((stack.get("attention") or {}).get("key_heads") is None for stack in stacks):
        return False
    return bool(st.checkbox(_("A path to a key or value leads to all heads that share it"), key="paths-together"))


def _side(effects: PathEffects) -> Side:
    """Draws the choice of what the paths lead to; at first the side with the largest effect."""
    names = {"query": _("to queries"), "key": _("to keys"), "value": _("to values")}
    strongest = panels.strongest_side(effects)
    chosen: Side | None = st.segmented_control(
        _("Paths"), SIDES, format_func=names.__getitem__, default=strongest, key="paths-side", label_visibility="collapsed"
    )
    return chosen or strongest


def _found(page: Page, effects: PathEffects, pairs: int) -> None:
    st.markdown(tokens.markdown(panels.sentence(page, effects, pairs)))
    _map(page, effects, _side(effects))
    if np.isnan(effects.rank):
        st.caption(_("There are too few paths for a rank correlation."))
    else:
        st.caption(
            _(
                "Rank correlation with the estimate by gradients: {rank}. Normalizations between two heads "
                "are those of the clean run; everything after the later head is recomputed.",
                rank=number(effects.rank, "+.2f"),
            )
        )
    drawn_panels.draw(page, panels.of_kept(effects), "paths-kept", fills=True)
    numbers = panels.of_table(effects)
    with st.expander(numbers.title, icon=":material/table:"):
        drawn_panels.draw_content(page, numbers, numbers.name)
        download.csv(panels.table(effects), page.trace, "paths", key="paths-csv")


def _map(page: Page, found: PathEffects, side: Side) -> None:
    """Draws the map of the paths to one side; a click selects the later head."""
    try:
        effects = panels.map_of(page, found, side)
    except NotDrawable as reason:
        st.caption(str(reason))
        return
    key = f"paths-{side}"
    drawn_panels.draw_content(page, effects.panel, key, fills=True, **choosing_point(key, partial(_select, effects.heads)))


def _select(heads: tuple[tuple[str, int], ...], at: list[int]) -> None:
    """Selects the later head of the clicked path."""
    site, head = heads[at[0]]
    update(site=site, head=head)
