"""The other panels of the page Training, beside the film: a measure of every head, and the loss of the sentence."""

from collections.abc import Iterator

from viz import labels
from viz.page import Page
from viz.presenting import tables
from viz.presenting.explore_panels import Drawn
from viz.presenting.panels import Panel
from viz.readings.training import Course, explanations
from viz.texts import _


def of_training(page: Page, measured: Course) -> Iterator[Drawn]:
    """The measure that the link asks for, of all heads; then the loss, if the network has an output layer."""
    measure, names = page.view.measure, [labels.site(site, head) for site, head in measured.heads]
    chosen = measured.heads.index((page.attention.site, page.head))
    said = _("One line per head; the selected head is bold. Hover over a line or tap it to see its name.")
    panel = Panel("Curves", "measure", explanations()[measure].title, said)
    yield panel, tables.curves(measured.steps, measured.values[measure].T, names, chosen)
    lost = tables.curves(measured.steps, measured.losses[None], [_("your sentence")], 0)
    yield Panel("Curves", "losses", _("Loss")), lost
