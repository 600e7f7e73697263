"""The panels of the page Training: the film of its snapshots, a measure of every head, and the loss of the sentence."""

from collections.abc import Iterator, Sequence

from model.trace.types import Trace
from viz.features.training import film_scene as film
from viz.features.training import runs, texts
from viz.features.training.metrics import Course, course
from viz.features.training.view import TrainingView
from viz.i18n.translate import _, join_sentences, number
from viz.labels import measures, tokens
from viz.metrics.teacher_forcing import fed
from viz.panels import Curves, NotDrawable, OfRun, Panel, Scene
from viz.session.selection import with_trace
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.explore import panels as explore

MOST_SNAPSHOTS = 4
"""Most snapshots of a training film on paper."""


def panels(page: Page, link: ViewState) -> list[Panel]:
    """The film, then its curves.

    Raises:
        NotDrawable: the model has no snapshots, or they cannot run.
    """
    if not page.info.snapshots:
        raise NotDrawable(_("No snapshots were saved while “{title}” was trained.", title=page.info.title))
    if problem := runs.too_long(page):
        raise NotDrawable(problem)
    frames, problems = runs.frames(page)
    if not frames:
        raise NotDrawable(join_sentences(problems))
    measured, steps = course(frames, fed(page.trace).ids), [frame.step for frame in frames]
    at = _place(page, steps)
    data = film.scene(frames, page.trace, measured, page.attention.site, page.head, page.view.query, at)
    chosen = {"snapshot": steps[at], "large": bool(link.site)}
    on_paper = [(steps[place], frames[place].fed) for place in printed_snapshots(len(steps), at)]
    drawn = Panel("film", "", Scene("Film", data), selected=chosen, paper=lambda: _printed(page, on_paper))
    return [drawn, *of_training(page, measured)]


def printed_snapshots(count: int, at: int) -> list[int]:
    """The snapshots that paper draws: that of the link, the last one, and others evenly between.

    Args:
        count: of all snapshots.
        at: that of the link.
    """
    evenly = (round(part * (count - 1) / (MOST_SNAPSHOTS - 1)) for part in range(MOST_SNAPSHOTS))
    chosen = sorted({at, count - 1, *evenly})
    while len(chosen) > MOST_SNAPSHOTS:  # the one that is nearest to that of the link goes
        chosen.remove(min((place for place in chosen[:-1] if place != at), key=lambda place: abs(place - at)))
    return chosen


def _place(page: Page, steps: Sequence[int]) -> int:
    """The place of the link's snapshot; without one, of the first."""
    snapshot = page.view.of(TrainingView).snapshot
    return steps.index(snapshot) if snapshot in steps else 0


def _printed(page: Page, snapshots: list[tuple[int, Trace]]) -> list[OfRun]:
    """The selected head at some snapshots."""
    return [explore.printed(with_trace(page, trace), "head", f"{texts.snapshot(step)}. ") for step, trace in snapshots]


def of_training(page: Page, measured: Course) -> Iterator[Panel]:
    """The measure that the link asks for, of all heads; then the loss, if the network has an output layer."""
    measure, names = page.view.of(TrainingView).measure, [tokens.site(site, head) for site, head in measured.heads]
    chosen = measured.heads.index((page.attention.site, page.head))
    steps = measured.steps
    at = _place(page, steps)
    value = number(float(measured.values[measure][at, chosen]), ".2f")
    gaps = {"head": names[chosen], "value": value, "step": number(steps[at], ",d")}
    told = _("{head} (bold), at step {step}: {value}.", **gaps)
    said = join_sentences([told, _("One line per head. Point at a line or tap it to see its name.")])
    curves = Curves(measured.steps, measured.values[measure].T, names, chosen)
    yield Panel("measure", measures.of_training()[measure], curves, said)
    yield Panel("losses", _("Loss"), Curves(measured.steps, measured.losses[None], [_("this sentence")], 0))
