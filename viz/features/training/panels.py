"""The panels of the page Training: the film of its snapshots, a measure of every head, and the loss of the sentence."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from model.trace.types import Trace
from viz.features.training import film_scene, runs, texts
from viz.features.training.curve_panels import of_heads, of_losses, of_moments, of_numbers, snapshot_of
from viz.features.training.metrics import Course, Frame, course
from viz.i18n.translate import _, join_sentences
from viz.metrics.teacher_forcing import fed
from viz.panels import NotDrawable, OfRun, Panel, Scene
from viz.session.state import Page, with_trace
from viz.url.view_state import ViewState
from viz.views.explore import panels as explore

MOST_SNAPSHOTS = 4
"""Most snapshots of a training film on paper."""


def panels(page: Page, link: ViewState) -> list[Panel]:
    """The film, then its curves, which paper leaves out."""
    film = film_of(page)
    drawn = [of_heads(page, film.measured), of_losses(page, film.measured)]
    return [of_film(page, film, bool(link.site)), *(replace(panel, paper=tuple) for panel in drawn)]


@dataclass(frozen=True, eq=False)
class TrainingFilm:
    """The snapshots of a training.

    Attributes:
        frames: their runs.
        measured: their measures.
    """

    frames: Sequence[Frame]
    measured: Course


def film_of(page: Page) -> TrainingFilm:
    """The film of the page's model.

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
    return TrainingFilm(frames, course(frames, fed(page.trace).ids))


def of_film(page: Page, film: TrainingFilm, large: bool = False) -> Panel:
    """All heads at every snapshot; on paper the selected head at some of them.

    Args:
        large: whether the selected head opens large in a lecture.
    """
    steps = [frame.step for frame in film.frames]
    at = steps.index(snapshot_of(page, film.measured))
    selection = page.attention.site, page.head, page.view.query
    data = film_scene.scene(film.frames, page.trace, film.measured, *selection, at)
    chosen = {"snapshot": steps[at], "large": large}
    on_paper = [(steps[index], film.frames[index].fed) for index in printed_snapshots(len(steps), at)]
    return Panel("film", "", Scene("Film", data), selected=chosen, paper=lambda: _printed(page, on_paper))


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


def _printed(page: Page, snapshots: list[tuple[int, Trace]]) -> list[OfRun]:
    """The selected head at some snapshots."""
    return [explore.printed(with_trace(page, trace), "head", f"{texts.snapshot(step)}. ") for step, trace in snapshots]


def _of_film(page: Page, link: ViewState) -> Iterator[Panel]:
    yield of_film(page, film_of(page), bool(link.site))


def _part(panels_of: Callable[[Page, Course], Panel]) -> Callable[[Page, ViewState], Iterator[Panel]]:
    """A part of the page from a function of the measures of its snapshots."""

    def panels(page: Page, _link: ViewState) -> Iterator[Panel]:
        yield panels_of(page, film_of(page).measured)

    return panels


def _numbers(page: Page, _link: ViewState) -> Iterator[Panel]:
    yield from of_numbers(page, film_of(page).measured)


PARTS: Mapping[str, Callable[[Page, ViewState], Iterator[Panel]]] = {
    "film": _of_film,
    "training-heads": _part(of_heads),
    "losses": _part(of_losses),
    "moments": _part(of_moments),
    "training-numbers": _numbers,
}
"""As `viz.feature.FeaturePage.parts`."""
