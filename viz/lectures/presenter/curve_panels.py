"""The other panels of the page Training, beside the film: a measure of every head, and the loss of the sentence."""

from collections.abc import Iterator

from viz.features.training.metrics import Course
from viz.features.training.view import TrainingView
from viz.i18n.translate import _, join_sentences, number
from viz.labels import measures, tokens
from viz.lectures.presenter import tables
from viz.lectures.presenter.explore_panels import PanelWithScene
from viz.lectures.presenter.panels import Panel
from viz.session.state import Page


def of_training(page: Page, measured: Course) -> Iterator[PanelWithScene]:
    """The measure that the link asks for, of all heads; then the loss, if the network has an output layer."""
    view = page.view.of(TrainingView)
    measure, names = view.measure, [tokens.site(site, head) for site, head in measured.heads]
    chosen = measured.heads.index((page.attention.site, page.head))
    steps = measured.steps
    at = steps.index(view.snapshot) if view.snapshot in steps else 0
    value = number(float(measured.values[measure][at, chosen]), ".2f")
    gaps = {"head": names[chosen], "value": value, "step": number(steps[at], ",d")}
    told = _("{head} (bold), at step {step}: {value}.", **gaps)
    said = join_sentences([told, _("One line per head. Point at a line or tap it to see its name.")])
    panel = Panel("Curves", "measure", measures.of_training()[measure], said)
    yield panel, tables.curves(measured.steps, measured.values[measure].T, names, chosen)
    lost = tables.curves(measured.steps, measured.losses[None], [_("this sentence")], 0)
    yield Panel("Curves", "losses", _("Loss")), lost
