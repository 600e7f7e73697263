"""The page Compare: two runs side by side, their outputs token by token, and the heads that changed most."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from model.trace.types import Attention, Site, Trace
from viz import canvas, export, labels
from viz.figures import heatmap
from viz.figures.difference import difference
from viz.figures.frame import downloadable
from viz.page import Page, card, choosing_head, say, update
from viz.readings import changes
from viz.readings.changes import Change, Reason
from viz.texts import _, _n
from viz.views import compare_outputs, compare_sides


@dataclass(frozen=True, eq=False)
class Compared:
    """The run of the second side, and its comparison with the first side.

    Attributes:
        second: the run of the second side.
        found: the changes, by site that can be compared.
        refused: the reasons, by site that cannot.
    """

    second: Trace
    found: dict[Site, Change]
    refused: dict[Site, Reason]


def show(page: Page) -> None:
    """Draws the page."""
    compare_sides.control(page)
    different = compare_sides.what_differs(page)
    if not different:
        st.info(_("Both sides are identical so far. Choose above what should be different on side B."), icon=":material/info:")
        _atlas(page, page.trace, _("Side A"), "first")
        return
    st.caption(labels.markdown(_("Side B differs in {differences}.", differences="; ".join(different))))
    second = compare_sides.run(page)
    if isinstance(second, str):
        say(_("Side B cannot be run: {reason}", reason=second))
        _atlas(page, page.trace, _("Side A"), "first")
        return
    _both(page, Compared(second, *changes.changes(page.trace, second)))


def _both(page: Page, compared: Compared) -> None:
    with card("outputs"):
        compare_outputs.draw(page.trace, compared.second)
    left, right = st.columns(2, gap="medium")
    with left:
        _atlas(page, page.trace, _("Side A"), "first")
    with right:
        _atlas(page, compared.second, _("Side B"), "second")
    with card("changes"):
        _changes(page, compared)
    with card("selected"):
        _selected(page, compared)
    if compared.found:
        with card("ranking"):
            _ranking(page, compared)


def _atlas(page: Page, trace: Trace, title: str, name: str) -> None:
    """Draws the atlas of one side. Query rows can be selected in the first side's only."""
    with st.container(key=f"side-{name}"):
        st.markdown(f"**{labels.markdown(_('{side}: {model}', side=title, model=trace.model['title']))}**")
        first = next(iter(trace.attention))
        there = page.attention.site in trace.attention and page.head < trace.at(page.attention.site).heads
        site, head = (page.attention.site, page.head) if there else (first, 0)
        own = name == "first"
        chosen = partial(_follow, _Place.of(page), own)
        canvas.atlas(trace, site, head, page.view.query if own else -1, key=f"atlas-{name}", chosen=chosen)


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
        st.toast(_("Only side B has {head}.", head=labels.site(site, head)))


def _changes(page: Page, compared: Compared) -> None:
    """Draws the atlas of differences and names the sites that it leaves out."""
    _heading(
        _("What changed in the attention"),
        _("Attention weight on side B minus side A. The color scale is a square root, so that small changes are visible."),
    )
    for note in (*_notes(page.trace, compared), *_left_out(compared.refused)):
        st.caption(labels.markdown(note))
    if compared.found:
        site, head = page.attention.site, page.head
        chosen = partial(_follow, _Place.of(page), False)
        canvas.changes(page.trace, compared.second, compared.found, site, head, key="atlas-changes", chosen=chosen)


def _notes(first: Trace, compared: Compared) -> list[str]:
    """Sentences on which rows of the sites are compared."""
    said = []
    for change in {(one.site.stack, one.site.kind): c for c in compared.found.values() if (one := c.first)}.values():
        one, other = change.first, change.second
        gaps = {"kind": labels.kind(one.site.stack, one.site.kind), "rows": len(change.rows), "keys": change.keys}
        gaps |= {"first": one.weights.shape[1], "second": other.weights.shape[1], "heads": change.heads}
        if (len(change.rows), len(change.rows)) != (one.weights.shape[1], other.weights.shape[1]):
            said.append(
                _n(
                    "{kind}: only the first row can be compared; after that the two outputs differ.",
                    "{kind}: only the first {rows} of {first} (A) and {second} (B) rows can be compared; after that "
                    "the two outputs differ.",
                    len(change.rows),
                    **gaps,
                )
            )
        if one.heads != other.heads:
            gaps |= {"own": one.heads, "others": other.heads}
            said.append(
                _(
                    "{kind}: number of heads {own} on side A, {others} on side B; only heads that both sides have are compared.",
                    **gaps,
                )
            )
    replaced = [pair for name, strip in first.tokens.items() for pair in _replaced(strip.texts, compared, name)]
    if replaced:
        said.append(
            _(
                "Some positions hold different words on the two sides. They are compared position by position and "
                "labeled with both words: “{first} / {second}”.",
                first=replaced[0][0],
                second=replaced[0][1],
            )
        )
    return said


def _replaced(texts: Sequence[str], compared: Compared, name: str) -> list[tuple[str, str]]:
    """The tokens of a strip that were compared although their texts differ: those of side A and of side B."""
    reach = max((c.keys for c in compared.found.values() if c.first.key_tokens == name), default=0)
    other = compared.second.tokens.get(name)
    pairs = zip(texts[:reach], other.texts[:reach], strict=False) if other is not None else ()
    return [(labels.plain(one), labels.plain(two)) for one, two in pairs if one != two]


def _left_out(refused: dict[Site, Reason]) -> list[str]:
    """Sentences on the sites that cannot be compared, with the reason."""
    groups: dict[tuple[str, Reason], list[int]] = {}
    for site, reason in refused.items():
        layers = groups.setdefault((labels.kind(site.stack, site.kind), reason), [])
        if site.layer + 1 not in layers:
            layers.append(site.layer + 1)
    return [_why_not(reason, kind, layers) for (kind, reason), layers in groups.items()]


def _why_not(reason: Reason, kind: str, layers: Sequence[int]) -> str:
    numbers = ", ".join(map(str, layers))
    where = _n("{kind}, layer {layers}", "{kind}, layers {layers}", len(layers), kind=kind, layers=numbers)
    if reason == "first":
        return _("{where}: only on side A, so there is nothing to compare.", where=where)
    if reason == "second":
        return _("{where}: only on side B, so there is nothing to compare.", where=where)
    return _("{where}: not compared, because the tokens of the two sides do not align.", where=where)


def _selected(page: Page, compared: Compared) -> None:
    """Draws the selected head on both sides, and its difference."""
    site, head = page.attention.site, page.head
    _heading(labels.site(site, head), _("Side A, side B, and the difference B − A."))
    there = compared.second.attention.get(site)
    one, two, apart = st.columns(3, gap="medium")
    with one:
        _map(page, page.trace, page.attention, _("Side A"), "first")
    with two:
        if there is None or head >= there.heads:
            st.caption(_("Side B has no such head."))
        else:
            _map(page, compared.second, there, _("Side B"), "second")
    with apart:
        _apart(page, compared)


def _map(page: Page, trace: Trace, attention: Attention, title: str, name: str) -> None:
    st.markdown(f"**{title}**")
    figure = heatmap.head_weights(trace, attention, page.head, page.dark, page.view.query if name == "first" else -1)
    _chart(page, figure, name, f"{title}: {labels.site(attention.site, page.head)}")


def _chart(page: Page, figure: object, name: str, alt: str) -> None:
    parts = (str(page.attention.site), f"head-{page.head + 1}", name)
    file = export.file_name(page.trace, *parts, ending="svg").removesuffix(".svg")
    st.plotly_chart(figure, width="stretch", config=downloadable(file), theme=None, key=f"map-{name}", alt=alt)


def _apart(page: Page, compared: Compared) -> None:
    """Draws the difference of the selected head, or says why there is none."""
    title = _("B − A")
    st.markdown(f"**{title}**")
    change = compared.found.get(page.attention.site)
    if change is None or page.head >= change.heads:
        st.caption(_("This head cannot be compared; see the reason above."))
        return
    sides = (page.trace, change.first), (compared.second, change.second)
    figure = difference(*sides, page.head, change.rows, change.keys, page.dark)
    _chart(page, figure, "difference", f"{title}: {labels.site(page.attention.site, page.head)}")
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
    queries = {site: labels.queries(page.trace, change.first, longest=None) for site, change in compared.found.items()}
    table = changes.table(compared.found, queries)
    names = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head"), "row": _("most changed row")}
    numbers = {"change": _("change"), "largest": _("change of that row"), "cell": _("largest change of one weight")}
    columns = {name: st.column_config.Column(title) for name, title in names.items()}
    columns |= {name: st.column_config.NumberColumn(title, format="%.4f") for name, title in numbers.items()}
    columns |= {"rows": st.column_config.Column(_("rows"))}
    clicked = choosing_head(table, "heads-by-change", query=-1)
    st.dataframe(table, column_config=columns, hide_index=True, selection_mode="single-row", **clicked)
    st.download_button(
        _("Download as CSV"),
        lambda: export.csv(table),
        export.file_name(page.trace, "changes", ending="csv"),
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
    )


def _explain() -> None:
    st.latex(r"\frac{1}{n}\sum_i \frac{1}{2} \sum_j \left| w^{(2)}_{ij} - w^{(1)}_{ij} \right|")
    meaning = _(
        "The total variation distance between the two sides, averaged over the rows that had a choice: the share of "
        "its weight that a row moved to other keys. 0: identical; 1: nothing in common."
    )
    caution = _(
        "It does not say how much the output changed; that also depends on the values that the head moves. Heads of "
        "two different models are paired by number only, which says nothing about what they learned."
    )
    for text in (meaning, caution):
        st.markdown(f":small[{labels.markdown(text)}]")


def _heading(title: str, subtitle: str) -> None:
    st.markdown(f"**{labels.markdown(title)}**")
    st.caption(labels.markdown(subtitle))
