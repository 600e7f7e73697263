"""The page Compare: two runs side by side, their outputs token by token, and the heads that changed most."""

from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.trace.types import Attention, Site, Trace
from viz import canvas
from viz.canvas.scenes import attention as scenes
from viz.features.compare import difference_scene as changed_heads
from viz.features.compare import notes, outputs, picker, run_difference, runs
from viz.features.compare import sides as compare_sides
from viz.features.compare.figures import difference
from viz.features.compare.notes import Compared
from viz.features.compare.view import CompareView, differing
from viz.figures import heatmap
from viz.i18n.translate import _, join_clauses, titled
from viz.labels import alt_text, tokens
from viz.session.state import Page, get_view_state, update
from viz.widgets import download, numeric_tables
from viz.widgets.cards import card, chart, choose_picture, choosing_head, expander_state, heading, one_screen, say


def show(page: Page) -> None:
    """Draws the page."""
    page = compare_sides.pinned(page)
    big = page.view.big
    example, words = ("", "") if page.view.of(CompareView).against else compare_sides.example(page)
    if not big:
        compare_sides.control(page, example)
    if example:
        page = replace(page, view=page.view.changed(against=differing(silence=example)))
        if not big:
            st.caption(words)
    different = picker.what_differs(page)
    if not different:
        st.info(_("Both sides are identical so far. Choose above what should be different on side B."), icon=":material/info:")
        _first_side(page)
        return
    st.caption(tokens.markdown(_("Differences on side B: {differences}.", differences=join_clauses(different))))
    if page.trace.steps and not page.info.recorded and not big:
        compare_sides.feed(page)
    found = runs.runs(page)
    if isinstance(found, str):
        say(_("Side B cannot be run: {reason}", reason=found))
        _first_side(page)
        return
    if found.problem:
        say(found.problem)
    compared = Compared(found, picker.names(page), *run_difference.changes(found.first, found.second))
    own = replace(page, trace=found.first, attention=found.first.at(page.attention.site))
    if compared.changed and not get_view_state()[0].site:  # the view of `page` names the site that it opens on
        site, head = run_difference.most_changed(compared.found)
        own = replace(own, attention=found.first.at(site), head=head)
    (_one_picture if big else _both)(own, compared)


def _one_picture(page: Page, compared: Compared) -> None:
    """Draws the picture that fills the screen in big mode, and the choice among them."""
    with one_screen():
        names = {"changes": _("What changed in the attention")} if compared.changed else {}
        picture = choose_picture(names | {"head": _("One head"), "difference": _("B − A")})
        if picture == "changes":
            _changes_overview(page, compared)
            return
        st.html(heading(tokens.site(page.attention.site, page.head)))
        if picture == "head":
            _both_maps(page, compared, *st.columns(2, gap="medium"))
        else:
            _apart(page, compared)


def _first_side(page: Page) -> None:
    """Draws the first side alone, which fills the screen in big mode."""
    with one_screen() if page.view.big else st.container():
        _atlas(page, page.trace, _("Side A"), "first")


def _both(page: Page, compared: Compared) -> None:
    one, other = _titles(compared)
    with card("outputs"):
        outputs.draw(compared.runs, (one, other), page.dark)
    left, right = st.columns(2, gap="medium")
    with left:
        _atlas(page, page.trace, one, "first")
    with right:
        _atlas(page, compared.second, other, "second")
    with card("changes"):
        _changes(page, compared)
    if compared.found and not compared.changed:
        with st.expander(_("Unchanged maps, and the table of heads"), icon=":material/equal:", **expander_state("equal")) as part:
            if part.open:
                _heads(page, compared)
    else:
        _heads(page, compared)


def _heads(page: Page, compared: Compared) -> None:
    """Draws the selected head on both sides, and all heads in order of their change."""
    with card("selected"):
        _selected(page, compared)
    if compared.found:
        with card("ranking"):
            _ranking(page, compared)


def _titles(compared: Compared) -> tuple[str, str]:
    """Titles of the sides: which one it is, and what it has that the other has not."""
    first, second = compared.names
    return _("Side A: {name}", name=first), _("Side B: {name}", name=second)


def _atlas(page: Page, trace: Trace, title: str, name: str) -> None:
    """Draws the atlas of one side. Query rows can be selected in the first side's only."""
    with st.container(key=f"side-{name}"):
        st.markdown(f"**{tokens.markdown(title)}**")
        first = next(iter(trace.attention))
        there = page.attention.site in trace.attention and page.head < trace.at(page.attention.site).heads
        site, head = (page.attention.site, page.head) if there else (first, 0)
        own = name == "first"
        chosen = partial(_follow, _Place.of(page), own)
        scene = scenes.atlas(trace, site, head, page.view.query if own else -1)
        canvas.draw("atlas", scene, key=f"atlas-{name}", chosen=chosen)


@dataclass(frozen=True)
class _Place:
    """The selection, and the head counts of the first side's sites. Callbacks outlive the page, so they hold no trace."""

    site: Site
    head: int
    query: int
    heads: dict[Site, int]

    @classmethod
    def of(cls, page: Page) -> "_Place":
        """The selection of a page."""
        there = {site: attention.heads for site, attention in page.trace.attention.items()}
        return cls(page.attention.site, page.head, page.view.query, there)


def _follow(place: _Place, own: bool, **fields: str | int) -> None:
    """Selects what was chosen in an atlas, if the first side has it; a query row counts only in the first side's `own` atlas."""
    site, head = Site.parse(str(fields.get("site", place.site))), int(fields.get("head", place.head))
    if head < place.heads.get(site, 0):
        update(site=str(site), head=head, query=fields.get("query", place.query) if own else -1)
    else:
        st.toast(_("Only on side B: {head}.", head=tokens.site(site, head)))


def _changes(page: Page, compared: Compared) -> None:
    """Draws the atlas of differences, without kinds of attention that did not change, and names the sites that it leaves out."""
    _heading(
        _("What changed in the attention"),
        _("Attention weight on side B minus side A. The color scale is a square root, so that small changes are visible."),
    )
    for note in notes.notes(compared):
        st.caption(tokens.markdown(note))
    if compared.changed:
        _changes_overview(page, compared)


def _changes_overview(page: Page, compared: Compared) -> None:
    chosen = partial(_follow, _Place.of(page), False)
    shown, _unmoved = run_difference.changed_kinds(compared.found)
    scene = changed_heads.scene(page.trace, compared.second, shown, page.attention.site, page.head)
    canvas.draw("atlas", scene, key="atlas-changes", chosen=chosen)


def _selected(page: Page, compared: Compared) -> None:
    """Draws the selected head on both sides, and its difference."""
    _heading(tokens.site(page.attention.site, page.head), _("Side A, side B, and the difference B − A."))
    one, two, apart = st.columns(3, gap="medium")
    _both_maps(page, compared, one, two)
    with apart:
        _apart(page, compared)


def _both_maps(page: Page, compared: Compared, one: DeltaGenerator, two: DeltaGenerator) -> None:
    """Draws the selected head of each side in a column."""
    head, there = page.head, compared.second.attention.get(page.attention.site)
    with one:
        _map(page, page.trace, page.attention, _("Side A"), "first")
    with two:
        if there is None or head >= there.heads:
            st.caption(_("Side B has no such head."))
        else:
            _map(page, compared.second, there, _("Side B"), "second")


def _map(page: Page, trace: Trace, attention: Attention, title: str, name: str) -> None:
    st.markdown(f"**{title}**")  # one line each, so that the three maps begin together
    figure = heatmap.head_weights(trace, attention, page.head, page.dark, page.view.query if name == "first" else -1)
    told = alt_text.head(trace, attention, page.head)
    _chart(page, figure, name, _("{what}: {value}", what=title, value=tokens.site(attention.site, page.head)), told)


def _chart(page: Page, figure: object, name: str, title: str, told: str) -> None:
    chart(figure, (page.trace, title), fills=True, key=f"map-{name}", alt=titled(title, told))


def _apart(page: Page, compared: Compared) -> None:
    """Draws the difference of the selected head, or says why there is none."""
    title = _("B − A")
    st.markdown(f"**{title}**")
    change = compared.found.get(page.attention.site)
    if change is None or page.head >= change.heads:
        st.caption(_("This head cannot be compared; see the reason above."))
        return
    sides = (page.trace, change.first), (compared.second, change.second)
    digits = numeric_tables.usual(4)
    figure = difference(*sides, page.head, change.rows, change.keys, page.dark, change.rounding, digits)
    told = alt_text.changes(*tokens.compared(*sides, change.rows, change.keys, longest=None), change.difference(page.head))
    _chart(page, figure, "difference", _("{what}: {value}", what=title, value=tokens.site(page.attention.site, page.head)), told)
    moved = change.by_row[page.head]
    counted = moved[~pd.isna(moved)]
    if len(counted):
        st.caption(
            _(
                "On average, {share:.1%} of each row’s weight moved (rows compared: {rows}).",
                share=counted.mean(),
                rows=len(counted),
            )
        )


def _ranking(page: Page, compared: Compared) -> None:
    """Draws a table of the heads, the most changed first; a click on a row selects the head."""
    _heading(_("Heads, most changed first"), _("Select a row to show that head above."))
    with st.popover(_("What is this?"), type="tertiary", key="about-change"):
        _explain()
    queries = {site: tokens.queries(page.trace, change.first, longest=None) for site, change in compared.found.items()}
    table = run_difference.table(compared.found, queries)
    names = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head"), "row": _("most changed row")}
    numbers = {"moved": _("weight moved"), "largest": _("weight moved in that row"), "cell": _("largest change of one weight")}
    titles = names | numbers | {"rows": _("rows")}
    clicked = choosing_head(table, "heads-by-change", query=-1)
    numeric_tables.draw(table, titles=titles, hide_index=True, selection_mode="single-row", **clicked)
    download.csv(table, page.trace, "changes")


def _explain() -> None:
    st.latex(r"\frac{1}{n}\sum_i \frac{1}{2} \sum_j \left| w^{(2)}_{ij} - w^{(1)}_{ij} \right|")
    meaning = _(
        "The total variation distance between the two sides, averaged over the rows that may attend to at least two "
        "keys: the share of its weight that a row moved to other keys. 0: identical; 1: nothing in common."
    )
    caution = _(
        "It does not say how much the output changed; that also depends on the values that the head moves. Heads of "
        "two different models are paired by number only, which says nothing about what they learned."
    )
    for text in (meaning, caution):
        st.markdown(f":small[{tokens.markdown(text)}]")


def _heading(title: str, subtitle: str) -> None:
    st.markdown(f"**{tokens.markdown(title)}**")
    st.caption(tokens.markdown(subtitle))
