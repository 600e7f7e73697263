"""The page What if: change anything while the network runs, and see what it was for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from model.requests.edits import write_edits
from model.trace.types import Site, Tokens
from viz import canvas
from viz.canvas.edit_events import Gesture
from viz.canvas.scenes import attention as scenes
from viz.canvas.scenes import overlay
from viz.canvas.wire import overviews
from viz.features.compare import run_difference
from viz.features.compare.run_difference import Change, changed_kinds, most_changed
from viz.features.compare.view import differing
from viz.features.what_if import drawn_edits, edit_chips, edit_form, effect_panels, examples, importance, panels, runs
from viz.features.what_if.edit_effect import effect
from viz.features.what_if.edit_list import EditList
from viz.features.what_if.runs import Answers, Fed
from viz.features.what_if.undo import begin_with, change_edits
from viz.i18n.translate import _, join_clauses
from viz.labels import edits as edit_words
from viz.labels import tokens
from viz.panels import Markup, Panel, needs_network
from viz.session.state import Page, get_view_state, page_at, update
from viz.url import links
from viz.url.parsers import ALL_OFF
from viz.url.view_state import WITHOUT_EDITS
from viz.widgets import drawn_panels, recorded_run
from viz.widgets.cards import by_pointer, card, choose_picture, heading, one_screen, say


def show(page: Page) -> None:
    """Draws the page. `page.trace` is the run without edits."""
    if page.info.recorded:
        st.info(needs_network(), icon=":material/info:")
        return
    if page.info.spec.get("recorded"):
        st.info(recorded_run.unchangeable(), icon=":material/info:")
        return
    edits = EditList.of(page.view)
    begins = not edits.edits and page.view.off != ALL_OFF
    if begins:
        edits = EditList(examples.first(page).edits)
        begin_with(edits.edits)
    top, waits, effects, overviews = (st.container(key=f"whatif-{name}") for name in ("edits", "waits", "effects", "overviews"))
    answers = runs.answers(page, edits.active, waits)
    fed = Fed(page.trace, page.trace, 1) if answers is None or isinstance(answers.fed, str) else answers.fed
    changed = run_difference.changes(fed.before, fed.now)[0] if fed.now is not fed.before else {}
    page = _at_change(page, changed)
    if page.view.big:
        _one_picture(page, edits, fed, changed)
        return
    with top:
        _edits(page, edits, begins)
        _hiding(page, edits, fed)
    with effects:
        if answers is not None:
            _effect(page, answers)
    with overviews:
        _overviews(page, edits, fed, changed)
    importance.draw(page)


def _one_picture(page: Page, edits: EditList, found: Fed, changed: Mapping[Site, Change]) -> None:
    """Draws the picture that fills the screen in big mode below what is changed, and the choice among them."""
    shown, _unmoved = changed_kinds(changed)
    names = {"heads": _("All heads with the edits")} | ({"changes": _("What changed")} if shown else {})
    with one_screen():
        picture = choose_picture(names)
        told = join_clauses(edit_words.words(edit, page.trace.tokens) for edit in edits.active)
        st.html(heading(told))
        if picture == "changes":
            _changes(page, found, changed)
        else:
            _heads_now(page, edits, found)


def _heads_now(page: Page, edits: EditList, found: Fed) -> None:
    """Draws all heads with the edits, where edits can be drawn."""
    edited = partial(_drawn, _SiteShapes.of(page))
    marked = drawn_edits.marks(edits.active, found.before, found.now)
    rest = overviews.leaves_out(page.view.hide, page.trace) == "first"
    scene = scenes.atlas(found.now, page.attention.site, page.head, page.view.query, marked, rest=rest)
    canvas.draw("atlas", scene, key="whatif-now", chosen=update, edited=edited)


def _edits(page: Page, edits: EditList, begins: bool) -> None:
    """Draws the list of edits with all that makes one.

    Args:
        begins: whether the list is the example that the page begins with.
    """
    with card("edits"):
        intro = _("The edits below change the run while it is computed. Everything on this page is a real result.")
        example = _("This is an example: switch it off and on, or make your own edit.")
        st.html(heading(_("What if …"), example if begins else intro))
        edit_chips.draw(page, edits)
        with st.container(horizontal=True, vertical_alignment="center", key="edit-buttons"):
            edit_chips.buttons(page, edits)
            with st.popover(_("Make an edit"), icon=":material/edit_note:", key="edit-form", on_change="rerun") as part:
                if part.open:
                    edit_form.draw(page)
            if edits.active:
                _links(page, edits)


def _at_change(page: Page, changed: Mapping[Site, Change]) -> Page:
    """The page at the head that changed most, unless one was chosen."""
    chosen = get_view_state()[0].site  # the view of `page` names the site that it opens on
    if chosen or not any(change.changed for change in changed.values()):
        return page
    site, head = most_changed(changed)
    return replace(page, attention=page.trace.at(site), head=head)


def _links(page: Page, edits: EditList) -> None:
    """Draws links to other pages that open with the edits."""
    told = write_edits(edits.active)
    stepped = replace(page.view, **{**WITHOUT_EDITS, "edits": told})
    compared = page.view.changed(**WITHOUT_EDITS, against=differing(edits=told))
    steps, comparison = page_at("step"), page_at("compare")
    st.page_link(steps, label=_("Step through this run"), icon=":material/step:", query_params=links.write(stepped))
    st.page_link(comparison, label=_("Compare both runs"), icon=":material/compare:", query_params=links.write(compared))


def _effect(page: Page, answers: Answers) -> None:
    """Answers the two questions: what the model writes now, and how likely what it wrote before is now."""
    found = answers.fed
    if isinstance(found, str):
        say(found)
        return
    if answers.free is not None:
        with card("writes-now"):
            _draw_effect(effect_panels.of_outputs(page, answers.free))
    if found.before.logits is not None and found.now.logits is not None and page.info.writes:
        with card("likelihood"):
            _draw_effect(effect_panels.of_likelihood(page, effect(found.before, found.now, found.first)))


def _draw_effect(panel: Panel) -> None:
    """Draws a panel in one message: its heading, and its content, if it has one."""
    st.html(heading(panel.title, panel.words) + (panel.content.html if isinstance(panel.content, Markup) else ""))


def _hiding(page: Page, edits: EditList, fed: Fed) -> None:
    """Draws the tokens, a click on which hides one; of an image its patches, which are brushed over, under the head as it is, and
    the words that were written about it."""
    trace, site = page.trace, page.attention.site
    hidden = drawn_edits.hidden_tokens(edits.active, trace)
    edited = partial(_drawn, _SiteShapes.of(page))
    if overlay.fits(trace, site):
        mouse = _("Drag over patches to hide them from every head; drag over hidden ones to show them again.")
        touch = _("Draw over patches with a finger to hide them from every head; over hidden ones to show them again.")
        st.html(heading(tokens.site(site, page.head), "") + by_pointer(mouse, touch))
        scene = overlay.scene(fed.now, site, page.head, page.view.query, page.view.overlay, None, hidden["source"], hides=True)
        canvas.draw("overlay", scene, key="whatif-overlay", chosen=update, edited=edited)
        if "target" not in trace.tokens:
            return
    st.html(
        by_pointer(
            _("Click a token to hide it from every head; click again to show it."),
            _("Tap a token to hide it from every head; tap again to show it."),
        )
    )
    canvas.draw("strips", scenes.strips(trace, site, -1, hidden), key="whatif-strips", edited=edited)


@dataclass(frozen=True)
class _SiteShapes:
    """The facts about a run that gestures need. Callbacks outlive the page, so they hold no trace.

    Attributes:
        strips: the tokens.
        shapes: queries and keys of each site.
    """

    strips: dict[str, Tokens]
    shapes: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, page: Page) -> "_SiteShapes":
        """The ground of a page's run."""
        shapes = {str(site): (len(attention.mask), attention.mask.shape[1]) for site, attention in page.trace.attention.items()}
        return cls(dict(page.trace.tokens), shapes)


def _drawn(ground: _SiteShapes, made: Gesture) -> None:
    """Adds what was drawn to the edits, if the run has its site."""
    if not made.site or made.site in ground.shapes:
        change_edits(lambda edits: drawn_edits.drawn(edits, made, ground.strips, ground.shapes.get(made.site, (0, 0))))


def _changes(page: Page, found: Fed, changed: Mapping[Site, Change]) -> str:
    """Draws what changed in the attention; returns the sentence that belongs below."""
    panel = panels.of_changes(found, changed, (page.attention.site, page.head))
    drawn_panels.draw_content(page, panel, "whatif-changes", printable=False, chosen=update)
    return panel.words


def _overviews(page: Page, edits: EditList, found: Fed, changed: Mapping[Site, Change]) -> None:
    """Draws all heads with the edits, where edits can be drawn, the kinds of attention that changed, and the heads without edits.

    Args:
        changed: the sites that can be compared.
    """
    site, head = page.attention.site, page.head
    reads = _("The run reads the tokens that were generated without the edits. Enlarge a head to drag over its cells.")
    st.html(heading(_("All heads with the edits"), reads if page.trace.steps else _("Enlarge a head to drag over its cells.")))
    _heads_now(page, edits, found)
    if found.now is found.before:
        return
    st.html(
        heading(
            _("What changed"),
            _(
                "Weight with the edits minus weight without them. "
                "The color scale is a square root, so that small changes are visible."
            ),
        )
    )
    shown, _unmoved = changed_kinds(changed)
    if not changed:
        st.caption(_("The two runs cannot be compared."))
    elif not shown:
        st.caption(_("No weight changed by more than the rounding error."))
    else:
        if sentence := _changes(page, found, changed):
            st.caption(tokens.markdown(sentence))
    with st.expander(_("All heads without the edits"), icon=":material/grid_view:", key="part-before", on_change="rerun") as part:
        if part.open:
            rest = overviews.leaves_out(page.view.hide, page.trace) == "first"
            scene = scenes.atlas(found.before, site, head, page.view.query, rest=rest)
            canvas.draw("atlas", scene, key="whatif-before", chosen=update)
