"""Paths: what each path between two heads carries of what tells the sentence from a corrupted one."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import BadSetting, HeadlightError, phrase
from model.features.circuit.circuits import SIDES, CircuitGraph, PathEffects, Paths, Side, mean_of, read_pairs
from model.features.circuit.sums import Part
from model.features.what_if.results import Head
from model.requests.inputs import Given
from model.trace.types import Site
from viz.features.circuit import figures, stream_parts
from viz.features.circuit.view import CircuitView
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, error_message, number
from viz.labels import tokens
from viz.session import access, patient_engine
from viz.session.state import Page, bind, decimals, update
from viz.widgets import download, numeric_tables
from viz.widgets.cards import chart, panel, say
from viz.widgets.clickable_figures import clickable

MOST_PAIRS = 32
"""Pairs of a file that are measured here."""

MOST_ROWS = 24
"""Heads on either side of the map: those that the largest effects lead to, or come from."""

LONG = 32
"""Most characters of a head's name on an axis of the map: "Decoder: layer 12, cross, head 16" is whole."""

MOST_PROJECTED = 8
"""The same in big mode, where the map fills the screen and its names are large."""


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
            if not (found := _measured(page, pairs, shared)):
                return
            if len(pairs) > 1:
                _of_pairs(pairs, found)
            _found(page, mean_of(found), len(pairs))


def draw_picture(page: Page, graph: CircuitGraph, kept: bool) -> None:
    """Draws one picture alone, as large as the screen of a projector, with what starts the measurement of this sentence.

    Args:
        kept: how much of the run the strongest paths carry, instead of the map of paths.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        _corrupted("collapsed")
        wanted = _wanted(page, graph, len(_own_pair(page)))
    if not wanted:
        return
    with patient_engine.show_pending():
        if not (measured := _measured(page, _own_pair(page), shared=False)):
            return
        found = mean_of(measured)
        if kept:
            _kept_picture(page, found)
        else:
            st.markdown(tokens.markdown(_sentence(found, 1)))
            _map(page, found, _side(found))


def _measured(page: Page, pairs: Sequence[tuple[Given, str]], shared: bool) -> list[PathEffects]:
    """What each path carries in each pair; none, and a sentence, where that cannot be measured."""
    try:
        return [page.engine.ask(_question(page, clean, corrupted, shared)) for clean, corrupted in pairs]
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


def _own_pair(page: Page) -> list[tuple[Given, str]]:
    """The sentence of the page and the corrupted one, if there is one."""
    corrupted = page.view.of(CircuitView).corrupted
    return [(page.view.request().source, corrupted)] if corrupted.strip() else []


def _pairs(page: Page) -> list[tuple[Given, str]]:
    """Clean and corrupted texts: those of the page, then those of a file, whose uploader this draws.

    Raises:
        BadSetting: the file is none of pairs, or has too many.
    """
    own = _own_pair(page)
    if access.is_public():
        return own
    file = st.file_uploader(
        _("Or further pairs: a text file, a clean and a corrupted sentence with a tab between them on each line"),
        type=["tsv", "txt"],
        max_upload_size=1,
        key="paths-file",
    )
    if file is None:
        return own
    more = read_pairs(file.getvalue(), file.name)
    if len(more) > MOST_PAIRS:
        allowed = phrase("at most {most:,} pairs; python -m model paths takes more", most=MOST_PAIRS)
        raise BadSetting(name=file.name, found=f"{len(more):,}", allowed=allowed)
    return own + list(more)


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


def _question(page: Page, clean: Given, corrupted: str, shared: bool) -> Paths:
    """The question about one pair; chosen tokens continue the page's own sentence alone."""
    own = page.view.request()
    request = own if clean == own.source else replace(own, source=clean, begin=())
    return Paths(replace(request, edits=()), corrupted, max(page.view.step, 0), shared=shared)


def _of_pairs(pairs: Sequence[tuple[Given, str]], found: Sequence[PathEffects]) -> None:
    """Draws what was measured in each pair."""
    rows = [
        (str(clean), corrupted, tokens.plain(one.tokens[one.token]), tokens.plain(one.other_text), one.clean, one.corrupted)
        for (clean, corrupted), one in zip(pairs, found, strict=True)
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


def _sentence(found: PathEffects, pairs: int) -> str:
    """What was measured, and its ends."""
    form = decimals(3)
    gaps = {
        "token": tokens.word(found.tokens[found.token]),
        "other": tokens.word(found.other_text),
        "clean": number(found.clean, form),
        "corrupted": number(found.corrupted, form),
    }
    if pairs > 1:
        return _(
            "Means over all pairs ({pairs:,}). Logit of the token minus that of the other one: {clean} in the clean runs, "
            "{corrupted} in the corrupted ones.",
            pairs=pairs,
            **gaps,
        )
    return _("Logit of “{token}” minus that of “{other}”: {clean} here, {corrupted} in the corrupted run.", **gaps)


def _side(found: PathEffects) -> Side:
    """Draws the choice of what the paths lead to; at first the side with the largest effect."""
    names = {"query": _("to queries"), "key": _("to keys"), "value": _("to values")}
    strongest = max(SIDES, key=lambda side: float(np.nanmax(np.abs(found.effects[SIDES.index(side)]), initial=0.0)))
    chosen: Side | None = st.segmented_control(
        _("Paths"), SIDES, format_func=names.__getitem__, default=strongest, key="paths-side", label_visibility="collapsed"
    )
    return chosen or strongest


def _found(page: Page, found: PathEffects, pairs: int) -> None:
    st.markdown(tokens.markdown(_sentence(found, pairs)))
    _map(page, found, _side(found))
    if np.isnan(found.rank):
        st.caption(_("There are too few paths for a rank correlation."))
    else:
        st.caption(
            _(
                "Rank correlation with the estimate by gradients: {rank}. Normalizations between two heads "
                "are those of the clean run; everything after the later head is recomputed.",
                rank=number(found.rank, "+.2f"),
            )
        )
    _kept(page, found)
    with st.expander(_("All paths as numbers"), icon=":material/table:"):
        whole = table(found)
        numeric_tables.draw(whole, hide_index=True)
        download.csv(whole, page.trace, "paths", key="paths-csv")


def _map(page: Page, found: PathEffects, side: Side) -> None:
    """Draws the effects of the paths to one side: later heads by earlier heads."""
    effects = found.effects[SIDES.index(side)]
    sizes = np.nan_to_num(np.abs(effects))
    most = MOST_PROJECTED if page.view.big else MOST_ROWS
    to = np.sort(np.argsort(-sizes.max(axis=1), kind="stable")[:most])
    since = np.sort(np.argsort(-sizes.max(axis=0), kind="stable")[:most])
    to = to[~np.isnan(effects[to]).all(axis=1)]
    since = since[~np.isnan(effects[:, since]).all(axis=0)]
    if not len(to) or not len(since):
        st.caption(_("No path leads there."))
        return
    labels = [tokens.site(Site.parse(head.site), head.head) for head in found.heads]
    form = f"+{decimals(4)}"

    def said(row: int, column: int) -> str:
        gaps = {"since": labels[column], "to": labels[row], "effect": number(float(effects[row, column]), form)}
        return _("{since} → {to}: {effect}", **gaps)

    hover = [[said(row, column) for column in since] for row in to]
    down, across = ([_short(found.heads[one], found.heads) for one in ones] for ones in (to, since))
    shown = effects[np.ix_(to, since)]
    figure = grid(down, across, shown, hover, page.dark, _("change of the logit difference"), longest=LONG)
    alt = _("Map of paths: one row per later head, one column per earlier head; the table below has the numbers")
    heads = tuple((found.heads[row].site, found.heads[row].head) for row in to)
    clickable(figure, f"paths-{side}", partial(_select, heads), alt, (page.trace, alt.partition(":")[0]), fills=True)


def _short(head: Head, heads: Sequence[Head]) -> str:
    """The name of a head for an axis: with its stack where the run has two."""
    stack = Site.parse(head.site).stack
    name = stream_parts.short_name(Part("head", head.site, head.head))
    if all(Site.parse(each.site).stack == stack for each in heads):
        return name
    return _("{what}: {value}", what=tokens.stack(stack), value=name)


def _select(heads: tuple[tuple[str, int], ...], at: list[int]) -> None:
    """Selects the later head of the clicked path."""
    site, head = heads[at[0]]
    update(site=site, head=head)


def _kept(page: Page, found: PathEffects) -> None:
    """Draws how much of the run a few paths carry."""
    st.markdown("**" + _("How much of the run do the strongest paths carry?") + "**")
    st.caption(
        _(
            "This many paths, those with the largest effects, are kept; on all others, the earlier head is read "
            "as in the corrupted run. Embeddings, feed-forward networks and what heads add directly to the "
            "logits are not cut."
        )
    )
    _kept_picture(page, found)


def _kept_picture(page: Page, found: PathEffects) -> None:
    """Draws the log-probability by the number of paths kept."""
    figure = figures.kept(found.kept, found.kept_log_probability, page.dark)
    ends = number(float(found.kept_log_probability[0]), ".2f"), number(float(found.kept_log_probability[-1]), ".2f")
    alt = _(
        "Log-probability of the token by the number of paths kept: from {none} without any to {all} with all",
        none=ends[0],
        all=ends[1],
    )
    chart(figure, (page.trace, alt.partition(":")[0]), fills=True, key="paths-kept", alt=alt)


def table(found: PathEffects) -> pd.DataFrame:
    """A row for each path, the largest effect first."""
    labels = [tokens.site(Site.parse(head.site), head.head) for head in found.heads]
    places = np.argwhere(~np.isnan(found.effects))
    order = np.argsort(-np.abs(found.effects[tuple(places.T)]), kind="stable")
    sides = {"query": _("queries"), "key": _("keys"), "value": _("values")}
    rows = [
        (labels[since], sides[SIDES[side]], labels[to], found.effects[side, to, since], found.estimates[side, to, since])
        for side, to, since in places[order].tolist()
    ]
    return pd.DataFrame(rows, columns=[_("from"), _("side"), _("to"), _("effect"), _("estimate")])
