"""The panels of the page What if: the run with the edits beside the one without, its effect, and what mattered."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from model.engine.api import Run
from model.features.what_if.questions import Edges, Heads, Prune, Words
from model.features.what_if.results import PruneCurve
from model.requests.edits import Edit
from model.trace.types import Site
from viz.canvas import standalone
from viz.features.compare import panels as compare
from viz.features.compare import part_panels as compared
from viz.features.compare import run_difference
from viz.features.compare.notes import no_map_changed, unchanged_kinds
from viz.features.compare.run_difference import Change, changed_kinds, most_changed
from viz.features.compare.runs import Runs, since
from viz.features.what_if import edge_panels, effect_panels, examples, head_panels, word_panels
from viz.features.what_if import runs as edited_runs
from viz.features.what_if.edit_effect import effect
from viz.features.what_if.importance_run import of_token, request
from viz.features.what_if.runs import Fed
from viz.figures.costs import Line
from viz.figures.importance import curves
from viz.i18n.translate import _, _n, join_sentences, number
from viz.labels import tokens
from viz.panels import Chart, NotDrawable, Panel, Scene
from viz.session.state import Page
from viz.url.view_state import WITHOUT_EDITS, ViewState
from viz.views.explore import panels as explore


def panels(page: Page, link: ViewState) -> list[Panel]:
    """Both runs, or the run where the link has no edits. The page has the run without them."""
    if not link.active_edits():
        return explore.of_run(page)
    plain = replace(page, view=replace(page.view, **WITHOUT_EDITS))
    runs = Runs(page.trace, page.engine.ask(Run(page.view.request())), since(page.trace))
    names = _("Without the edits"), _("With the edits")
    return compare.of_both(plain, replace(page.view, site=link.site), runs, names)


def active_edits(page: Page) -> tuple[Edit, ...]:
    """The edits of the view; where it has none, those of the example that the page begins with."""
    return page.view.active_edits() or examples.first(page).edits


def fed(page: Page) -> Fed:
    """The runs that read what was written before.

    Raises:
        NotDrawable: there are none.
    """
    runs = edited_runs.fed(page, active_edits(page))
    if isinstance(runs, str):
        raise NotDrawable(runs)
    return runs


def of_changes(runs: Fed, found: Mapping[Site, Change], selection: tuple[Site, int]) -> Panel:
    """What the edits changed in the attention.

    Args:
        found: the sites that can be compared.
        selection: the head in the frame.

    Raises:
        NotDrawable: the runs cannot be compared, or no weight changed.
    """
    changed, unmoved = changed_kinds(found)
    if not changed:
        raise NotDrawable(no_map_changed(found) if found else _("The two runs cannot be compared."))
    drawn = compared.of_differences(runs.before, runs.now, changed, selection)
    return replace(drawn, title=_("What changed"), words=unchanged_kinds(unmoved) if unmoved else "")


def of_pruning(orders: Mapping[str, PruneCurve], at: int | None) -> Panel:
    """The log-probability of what was written over the number of heads silenced.

    Args:
        orders: by the name of the order in which heads are silenced.
        at: how many are silenced in the run that is shown; None: where a word changes for the first time in the first order.
    """
    first = next(iter(orders.values()))
    totals = {name: curve.curve.sum(axis=1) for name, curve in orders.items()}
    place = first.breaks_at if at is None else at
    marked = None if place is None else (float(place), float(next(iter(totals.values()))[place]))
    chart = Chart(
        range(len(first.curve)),
        [Line(name, values.tolist()) for name, values in totals.items()],
        (_("heads silenced"), _("log-probability")),
        mark=marked,
        alt=_("Log-probability of the target against the number of silenced heads, for both orders"),
        plot=None if at is None else lambda dark: curves(totals, at, dark),
    )
    return Panel("prune", _("Heads silenced one after another"), chart)


def about_pruning(found: PruneCurve, at: int) -> str:
    """A sentence on the effect of so many silenced heads."""
    broken = found.breaks_at
    gaps = {"count": at, "total": number(found.curve[at].sum(), ".2f"), "all": len(found.order)}
    gaps["kept"] = int((found.likeliest[at] == np.array(found.ids)).sum())
    gaps["tokens"] = len(found.ids)
    sentences = [
        _(
            "Heads silenced: {count} of {all}. Log-probability of the target: {total}. Target tokens that are still the "
            "most likely: {kept} of {tokens}.",
            **gaps,
        )
    ]
    if at:
        last = found.order[at - 1]
        sentences.append(_("Silenced last: {head}.", head=tokens.site(Site.parse(last.site), last.head)))
    if broken is None:
        return join_sentences([*sentences, _("Every target token remains the most likely one.")])
    breaks = _n(
        "It breaks when {broken} head is silenced: a target token is then no longer the most likely.",
        "It breaks when {broken} heads are silenced: a target token is then no longer the most likely.",
        broken,
        broken=broken,
    )
    return join_sentences([*sentences, breaks])


def _prune(page: Page, _link: ViewState) -> Iterator[Panel]:
    """The log-probability of what was written over the number of heads silenced, with a dot where a word changes."""
    found = page.engine.ask(Prune(page.view.request()))
    words = [_("Always the head that costs least is silenced next.")]
    if found.breaks_at is not None:
        gaps = {"breaks": found.breaks_at, "all": len(found.order)}
        words.append(_("The dot: {breaks} of {all} are silenced, and a word changes for the first time.", **gaps))
    drawn = of_pruning({_("log-probability of what was written"): found}, None)
    yield replace(drawn, words=join_sentences(words))


def _edited_heads(page: Page, _link: ViewState) -> Iterator[Panel]:
    runs = fed(page)
    for name, title, trace in (
        ("with", _("All heads with the edits"), runs.now),
        ("without", _("All heads without the edits"), runs.before),
    ):
        atlas = standalone.atlas_with_parts(trace, page.attention.site, page.head, page.view.query)
        yield Panel(name, title, Scene("Atlas", *atlas), width="half")


def _edited_changes(page: Page, link: ViewState) -> Iterator[Panel]:
    runs = fed(page)
    found = run_difference.changes(runs.before, runs.now)[0]
    changed, _unmoved = changed_kinds(found)
    yield of_changes(runs, found, (page.attention.site, page.head) if link.site or not changed else most_changed(changed))


def _writes_now(page: Page, _link: ViewState) -> Iterator[Panel]:
    if not edited_runs.writes_freely(page):
        raise NotDrawable(_("This run generated nothing."))
    yield effect_panels.of_outputs(page, edited_runs.free(page, active_edits(page)))


def _likelihood(page: Page, _link: ViewState) -> Iterator[Panel]:
    runs = fed(page)
    if runs.before.logits is None or runs.now.logits is None:
        raise NotDrawable(_("This run generated nothing."))
    yield effect_panels.of_likelihood(page, effect(runs.before, runs.now, runs.first))


def _matters(page: Page, _link: ViewState) -> Iterator[Panel]:
    """What each head is for, by silencing it alone."""
    found = page.engine.ask(Heads(request(page), ("without",)))
    assert found.without is not None
    numbers = of_token(found.without, None)
    words = join_sentences(filter(None, [head_panels.meaning("without", "zeros"), head_panels.redundancy(page, found, None)]))
    yield replace(head_panels.of_heads(page, found, numbers, "without"), words=words)
    table = head_panels.all_heads(page, found, {"without": numbers})
    yield head_panels.of_sharpness(table, [tokens.site(Site.parse(head.site), head.head) for head in found.heads], "without")
    yield head_panels.of_table(table)


def _matters_words(page: Page, _link: ViewState) -> Iterator[Panel]:
    found = page.engine.ask(Words(request(page)))
    token = _token(page, len(found.tokens))
    yield word_panels.of_methods(page, found, token)
    words = join_sentences(word_panels.about_agreement(page, found, token))
    yield replace(word_panels.of_agreement(found, token), words=words)
    yield word_panels.of_numbers(found, token)


def _matters_edges(page: Page, _link: ViewState) -> Iterator[Panel]:
    found = page.engine.ask(Edges(request(page), _token(page, max(1, len(page.trace.steps)))))
    for edges in edge_panels.maps(page, found):
        yield replace(edges.panel, words=edge_panels.about())


def _token(page: Page, count: int) -> int:
    """The target token that the link's step names, else the first one."""
    return min(max(page.view.step, 0), count - 1)


PARTS: Mapping[str, Callable[[Page, ViewState], Iterator[Panel]]] = {
    "writes-now": _writes_now,
    "likelihood": _likelihood,
    "edited-heads": _edited_heads,
    "edited-changes": _edited_changes,
    "matters": _matters,
    "prune": _prune,
    "matters-words": _matters_words,
    "matters-edges": _matters_edges,
}
"""As `viz.feature.FeaturePage.parts`."""
