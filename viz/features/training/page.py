"""The page Training: one sentence through all snapshots of a training, its weights and outputs, and when heads specialized."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial

import streamlit as st

from model.engine.api import Describe, ModelInfo, Models, Run
from model.errors import HeadlightError
from model.requests.request import Decoding, RunRequest
from model.requests.snapshots import without_step
from model.trace.types import Trace
from viz import canvas
from viz.feature import draw_parts
from viz.features.print.catalogue import Figure
from viz.features.training import curves, runs, texts
from viz.features.training import film_scene as film
from viz.features.training.curve_panels import snapshot_of
from viz.features.training.filmstrip import Snapshot, filmstrip
from viz.features.training.metrics import Course, Frame, course
from viz.features.training.panels import TrainingFilm, of_film
from viz.features.training.view import TrainingView
from viz.i18n.translate import _, _n, error_message, join_list, number, said
from viz.labels import alt_text, tokens
from viz.metrics.teacher_forcing import fed
from viz.panels import OfRun, Picture, needs_network
from viz.session.state import Page, update
from viz.url.view_state import another_model
from viz.widgets import drawn_panels
from viz.widgets.cards import choose_picture, one_screen, panel, say


def show(page: Page) -> None:
    """Draws the page."""
    if page.info.recorded:
        st.info(needs_network(), icon=":material/info:")
        return
    page = _of_the_training(page)
    if page.view.big and (page_of_film := page if page.info.snapshots else _another_film(page)) is not None:
        _one_picture(
            page_of_film, update if page_of_film is page else partial(runs.switch, page_of_film.info, page_of_film.view.text)
        )
        return
    if page.info.snapshots:
        measured = _film(page, update)
        if measured is not None:
            curves.draw(page, measured)
        return
    other = _another_film(page)
    _say_none(page, other)
    _films(page)
    if other is not None:
        _film(other, partial(runs.switch, other.info, other.view.text))
    _say_how_to_record()


def _film(page: Page, chosen: canvas.Chosen) -> Course | None:
    """Draws the film of the page's model; returns its measures, None if it cannot be shown."""
    if problem := runs.too_long(page):
        say(problem)
        return None
    frames, problems = runs.frames(page)
    for problem in problems:
        say(problem)
    if not frames:
        return None
    _say_missing(page, frames)
    _about(page, frames)
    measured = _course(page, frames)
    with panel("film"):
        _draw_film(page, frames, measured, chosen)
    at = measured.steps.index(snapshot_of(page, measured))
    run = film.atlas_of(frames[at].fed, page.trace)
    draw_parts("picture", Picture("film", run, lambda: _figures(page, run, frames, measured)))
    return measured


def _one_picture(page: Page, chosen: canvas.Chosen) -> None:
    """Draws the picture that fills the screen in big mode, and the choice among them.

    Args:
        page: that of a model with snapshots.
    """
    names = {"film": _("Training film"), "curves": _("All heads during training"), "losses": _("Loss")}
    with one_screen():
        picture = choose_picture(names)
        frames, problems = runs.frames(page) if not (problem := runs.too_long(page)) else ((), [problem])
        for problem in problems:
            say(problem)
        if not frames:
            return
        if picture == "film":
            _say_missing(page, frames)
            _draw_film(page, frames, _course(page, frames), chosen)
        else:
            curves.draw_one(page, _course(page, frames), picture)


def _course(page: Page, frames: Sequence[Frame]) -> Course:
    """The measures of all heads at all snapshots."""
    identity = tuple((frame.step, str(frame.fed.model["fingerprint"])) for frame in frames)
    return _measured(identity, page.view.request(), frames, fed(page.trace).ids)


def _draw_film(page: Page, frames: Sequence[Frame], measured: Course, chosen: canvas.Chosen) -> None:
    drawn_panels.draw_content(page, of_film(page, TrainingFilm(frames, measured)), "film", printable=False, chosen=chosen)


def _figures(page: Page, run: Trace, frames: Sequence[Frame], measured: Course) -> list[Figure | OfRun]:
    """For print: the selected head at every snapshot, and the figures of the snapshot that is shown."""
    site, head = page.attention.site, page.head
    losses = [float(loss) if math.isfinite(loss) else None for loss in measured.losses]
    title, description = tokens.head_name(run, site, head), alt_text.film(measured.steps, losses)
    snapshots = [Snapshot(texts.snapshot(frame.step), frame.fed.at(site)) for frame in frames]
    film = Figure("film", title, lambda options: filmstrip(run, snapshots, head, options, title, description))
    return [film, OfRun("", run, site, head, page.view.query)]


def _of_the_training(page: Page) -> Page:
    """If the model is itself a snapshot, the page of its training at that snapshot."""
    name, step = without_step(page.info.name)
    if step is None or page.info.snapshots:
        return page
    try:
        info = page.engine.ask(Describe(name))
        asked = page.view.of(TrainingView).snapshot
        view = page.view.changed(model=name, snapshot=step if asked < 0 else asked)
        trace = page.engine.ask(Run(view.request()))
    except HeadlightError:
        return page
    return replace(page, info=info, view=view, trace=trace, attention=trace.at(page.attention.site))


def _say_missing(page: Page, frames: Sequence[Frame]) -> None:
    """Says that the snapshot that the view asks for does not exist, if so."""
    steps, asked = [frame.step for frame in frames], page.view.of(TrainingView).snapshot
    if asked >= 0 and asked not in steps:
        known = join_list(number(step, ",") for step in steps)
        say(_("There is no snapshot at step {asked:,}. Available: {there}. Showing the last one.", asked=asked, there=known))


@st.cache_resource(max_entries=16, show_spinner=False)
def _measured(identity: tuple[tuple[int, str], ...], request: RunRequest, _frames: Sequence[Frame], ids: tuple[int, ...]) -> Course:
    """The measures of the frames, cached by run."""
    return course(_frames, ids)


def _about(page: Page, frames: Sequence[Frame]) -> None:
    """Draws an explanation of what is compared."""
    fields = {"count": len(frames), "title": page.info.title}
    text = _n(
        "{title}: this sentence in {count} snapshot of the training.",
        "{title}: this sentence in {count} snapshots, from before the first training step to the last.",
        len(frames),
        **fields,
    )
    st.caption(tokens.markdown(text))
    if frames[-1].own is not None:
        st.caption(
            _(
                "Every snapshot reads the same target, so that their rows can be compared: the finished model’s "
                "output, or the target that you type in the sidebar. Step and play with the buttons, or with the arrow keys "
                "and Space."
            )
        )


def _say_none(page: Page, other: Page | None) -> None:
    """Says that this model has no snapshots, and whose film is shown instead."""
    fields = {"title": page.info.title}
    if other is None:
        text = _("No snapshots were saved while “{title}” was trained, so it has no training film.", **fields)
    else:
        fields |= {"other": other.info.title, "text": other.view.text or ""}
        text = (
            _("“{title}” has no snapshots: this is the training film of “{other}”.", **fields)
            if other.view.text == page.view.text
            else _("“{title}” has no snapshots: this is the training film of “{other}”, on its own example “{text}”.", **fields)
        )
    st.info(tokens.markdown(text), icon=":material/movie:")


def _another_film(page: Page) -> Page | None:
    """The page of another model that has a film: one of the same languages, on the same sentence, if there is one."""
    films = sorted(_with_film(page), key=lambda info: info.languages != page.info.languages)
    if not films:
        return None
    info = films[0]
    text = page.view.text if info.languages == page.info.languages else next(iter(info.examples), "")
    view = page.view.changed(**{**another_model(), **asdict(Decoding()), "model": info.name, "text": text})
    try:
        trace = page.engine.ask(Run(view.request()))
    except HeadlightError as error:
        say(error_message(error))
        return None
    return replace(page, info=info, view=view, trace=trace, attention=trace.last_cross(), head=0)


def _with_film(page: Page) -> list[ModelInfo]:
    return [info for info in page.engine.ask(Models()).models if info.snapshots and not info.problem]


def _films(page: Page) -> None:
    """Draws which models have a training film."""
    others = _with_film(page)
    if others:
        st.markdown("**" + _("Models with a training film") + "**")
    with st.container(horizontal=True):
        for info in others:
            st.button(
                tokens.markdown(info.title),
                help=tokens.markdown(said(info.summary)),
                key=f"film-of-{info.name}",
                icon=":material/play_circle:",
                on_click=lambda info=info: runs.switch(info),
            )


def _say_how_to_record() -> None:
    """Draws how a film of one's own training is made."""
    st.markdown("**" + _("Make a training film of your own") + "**")
    st.caption(
        _(
            "Train with snapshots (saved on a logarithmic schedule) and put the folder into checkpoints/. It will appear "
            "here automatically."
        )
    )
    st.code("python -m model train RECIPE --data FOLDER --out checkpoints/NAME --snapshots log", language=None, wrap_lines=True)
