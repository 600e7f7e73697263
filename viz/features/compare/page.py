"""The page Compare: two runs side by side, their outputs token by token, and the heads that changed most."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.trace.types import Site, Trace
from viz import canvas
from viz.canvas.scenes import attention as scenes
from viz.features.compare import notes, output_panels, picker
from viz.features.compare import part_panels as panels
from viz.features.compare import sides as compare_sides
from viz.features.compare.notes import Compared
from viz.features.compare.view import CompareView, differing
from viz.i18n.translate import _, join_clauses
from viz.labels import tokens
from viz.panels import NotDrawable, Panel, Table
from viz.session.state import Page, get_view_state, update
from viz.widgets import download, drawn_panels
from viz.widgets.cards import card, choose_picture, choosing_head, expander_state, heading, one_screen, say


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
    try:
        sides = panels.compared(page, picker.names(page))
    except NotDrawable as reason:
        say(str(reason))
        _first_side(page)
        return
    if sides.runs.problem:
        say(sides.runs.problem)
    focused = panels.focused(page, sides, bool(get_view_state()[0].site))  # the view of `page` names the site that it opens on
    (_one_picture if big else _both)(focused, sides)


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
            _maps(page, panels.of_head(page, compared), st.columns(2, gap="medium"))
        else:
            _map(page, panels.of_difference(page, compared))


def _first_side(page: Page) -> None:
    """Draws the first side alone, which fills the screen in big mode."""
    with one_screen() if page.view.big else st.container():
        _atlas(page, page.trace, _("Side A"), "first")


def _both(page: Page, compared: Compared) -> None:
    title_a, title_b = panels.titles(compared.names)
    with card("outputs"):
        _outputs(page, compared, (title_a, title_b))
    left, right = st.columns(2, gap="medium")
    with left:
        _atlas(page, page.trace, title_a, "first")
    with right:
        _atlas(page, compared.second, title_b, "second")
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


def _outputs(page: Page, compared: Compared, names: tuple[str, str]) -> None:
    """Draws every strip of the two runs in two aligned rows; of the written strip its log-probabilities, too."""
    _heading(_("The two outputs, aligned"), output_panels.about_alignment())
    for panel in output_panels.of_strips(page, compared.runs, names):
        if isinstance(panel.content, Table):
            with st.expander(panel.title, icon=":material/table:", key=panel.name):
                drawn_panels.draw_content(page, panel, f"aligned-{panel.name}")
            continue
        drawn_panels.draw_content(page, panel, panel.name)
        if panel.words:
            st.caption(panel.words)
    for sentence in output_panels.unmatched(compared.runs):
        st.caption(tokens.markdown(sentence))
    for panel in output_panels.of_probabilities(page, compared.runs, names):
        drawn_panels.draw(page, panel, "dumbbells")


def _atlas(page: Page, trace: Trace, title: str, name: str) -> None:
    """Draws the atlas of one side. Query rows can be selected in the first side's only."""
    with st.container(key=f"side-{name}"):
        st.markdown(f"**{tokens.markdown(title)}**")
        is_first = name == "first"
        chosen = partial(_follow, _Followed.of(page), is_first)
        scene = scenes.atlas(trace, *panels.selection_in(page, trace), page.view.query if is_first else -1)
        canvas.draw("atlas", scene, key=f"atlas-{name}", chosen=chosen)


@dataclass(frozen=True)
class _Followed:
    """The selection, and the head counts of the first side's sites. Callbacks outlive the page, so they hold no trace."""

    site: Site
    head: int
    query: int
    heads: dict[Site, int]

    @classmethod
    def of(cls, page: Page) -> "_Followed":
        """The selection of a page."""
        heads = {site: attention.heads for site, attention in page.trace.attention.items()}
        return cls(page.attention.site, page.head, page.view.query, heads)


def _follow(followed: _Followed, is_own: bool, **fields: str | int) -> None:
    """Selects what was chosen in an atlas, if the first side has it; a row counts only in its own atlas (`is_own`)."""
    site, head = Site.parse(str(fields.get("site", followed.site))), int(fields.get("head", followed.head))
    if head < followed.heads.get(site, 0):
        update(site=str(site), head=head, query=fields.get("query", followed.query) if is_own else -1)
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
    chosen = partial(_follow, _Followed.of(page), False)
    drawn_panels.draw_content(page, panels.of_changes(page, compared), "atlas-changes", printable=False, chosen=chosen)


def _selected(page: Page, compared: Compared) -> None:
    """Draws the selected head on both sides, and its difference."""
    _heading(tokens.site(page.attention.site, page.head), _("Side A, side B, and the difference B − A."))
    _maps(page, [*panels.of_head(page, compared), panels.of_difference(page, compared)], st.columns(3, gap="medium"))


def _maps(page: Page, maps: Iterable[Panel], columns: Sequence[DeltaGenerator]) -> None:
    """Draws maps of the selected head, each in a column."""
    for column, panel in zip(columns, maps, strict=True):
        with column:
            _map(page, panel)


def _map(page: Page, panel: Panel) -> None:
    if panel.title:
        st.markdown(f"**{panel.title}**")  # one line each, so that the three maps begin together
    drawn_panels.draw_content(page, panel, f"map-{panel.name}", fills=True)
    if panel.words:
        st.caption(panel.words)


def _ranking(page: Page, compared: Compared) -> None:
    """Draws a table of the heads, the most changed first; a click on a row selects the head."""
    _heading(_("Heads, most changed first"), _("Select a row to show that head above."))
    with st.popover(_("What is this?"), type="tertiary", key="about-change"):
        _explain()
    panel = panels.of_ranking(page, compared)
    assert isinstance(panel.content, Table)
    table = panel.content.frame
    key = "heads-by-change"
    chosen = choosing_head(table, key, query=-1)["on_select"]
    drawn_panels.draw_content(page, panel, key, selection_mode="single-row", on_select=chosen)
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
