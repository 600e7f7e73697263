"""The panels of the page What if: the run with the edits beside the one without, or the heads silenced one after another."""

from dataclasses import replace

from model.engine.api import Run
from model.features.what_if.questions import Prune
from viz.features.compare import panels as compare
from viz.features.compare.runs import Runs, since
from viz.figures.costs import Line
from viz.i18n.translate import _, join_sentences
from viz.panels import Chart, Panel
from viz.session.state import Page
from viz.url.view_state import WITHOUT_EDITS, ViewState
from viz.views.explore import panels as explore


def panels(page: Page, link: ViewState) -> list[Panel]:
    """Both runs, or the run where the link has no edits. The page has the run without them."""
    if "prune" in page.view.opened.split():
        return [of_prune(page)]
    if not link.active_edits():
        return explore.of_run(page)
    plain = replace(page, view=replace(page.view, **WITHOUT_EDITS))
    runs = Runs(page.trace, page.engine.ask(Run(page.view.request())), since(page.trace))
    names = _("Without the edits"), _("With the edits")
    return compare.of_both(plain, replace(page.view, site=link.site), runs, names)


def of_prune(page: Page) -> Panel:
    """The log-probability of what was written over the number of heads silenced, with a dot where a word changes.

    Raises:
        HeadlightError: the run is not possible.
    """
    found = page.engine.ask(Prune(page.view.request()))
    totals, breaks = found.curve.sum(axis=1).tolist(), found.breaks_at
    words = _("Always the head that costs least is silenced next.")
    if breaks is not None:
        gaps = {"breaks": breaks, "all": len(totals) - 1}
        dot = _("The dot: {breaks} of {all} are silenced, and a word changes for the first time.", **gaps)
        words = join_sentences([words, dot])
    chart = Chart(
        range(len(totals)),
        [Line(_("log-probability of what was written"), totals)],
        (_("heads silenced"), _("log-probability")),
        mark=(float(breaks), totals[breaks]) if breaks is not None else None,
    )
    return Panel("prune", _("Heads silenced one after another"), chart, words)
