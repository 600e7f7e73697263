"""The page Training: one sentence through all snapshots of a training, its weights and outputs, and when heads specialized."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.errors import HeadlightError
from model.spec.request import RunRequest
from model.spec.snapshots import without_step
from viz import canvas, labels
from viz.page import Page, say, update
from viz.readings.training import Course, Frame, course, fed
from viz.texts import _, _n
from viz.views import training_curves, training_runs


def show(page: Page) -> None:
    """Draws the page."""
    page = _of_the_training(page)
    if not page.info.snapshots:
        _none_here(page)
        return
    if problem := training_runs.too_long(page):
        say(problem)
        return
    frames, problems = training_runs.frames(page)
    for problem in problems:
        say(problem)
    if not frames:
        return
    at = _frame_of(page, frames)
    _about(page, frames)
    identity = tuple((frame.step, str(frame.fed.model["fingerprint"])) for frame in frames)
    measured = _measured(identity, page.view.request(), frames, fed(page.trace).ids)
    place = (page.attention.site, page.head, page.view.query)
    canvas.film(frames, page.trace, measured, place, at, key="film", chosen=update)
    training_curves.draw(page, measured)


def _of_the_training(page: Page) -> Page:
    """If the model is itself a snapshot, the page of its training at that snapshot."""
    name, step = without_step(page.info.name)
    if step is None or page.info.snapshots:
        return page
    try:
        info = page.engine.describe(name)
        view = replace(page.view, model=name, snapshot=step if page.view.snapshot < 0 else page.view.snapshot)
        trace = page.engine.run(view.request())
    except HeadlightError:
        return page
    return replace(page, info=info, view=view, trace=trace, attention=trace.at(page.attention.site))


def _frame_of(page: Page, frames: Sequence[Frame]) -> int:
    """Index of the frame that the view asks for; the last one if it asks for none or for one that does not exist."""
    steps, asked = [frame.step for frame in frames], page.view.snapshot
    if asked in steps:
        return steps.index(asked)
    if asked >= 0:
        there = ", ".join(f"{step:,}" for step in steps)
        say(_("There is no snapshot at step {asked:,}. Available: {there}. Showing the last one.", asked=asked, there=there))
    return len(steps) - 1


@st.cache_resource(max_entries=16, show_spinner=False)
def _measured(identity: tuple[tuple[int, str], ...], request: RunRequest, _frames: Sequence[Frame], ids: tuple[int, ...]) -> Course:
    """The measures of the frames, cached by run."""
    return course(_frames, ids)


def _about(page: Page, frames: Sequence[Frame]) -> None:
    """Draws an explanation of what is compared."""
    gaps = {"count": len(frames), "title": page.info.title}
    text = _n(
        "{title}: your sentence in {count} snapshot of the training.",
        "{title}: your sentence in {count} snapshots, from before the first training step to the last.",
        len(frames),
        **gaps,
    )
    st.caption(labels.markdown(text))
    if frames[-1].own is not None:
        st.caption(
            _(
                "Every snapshot reads the same target, so that their rows can be compared: the finished model’s "
                "output, or the target that you type in the sidebar. Use the left and right arrow keys to step and "
                "Space to play."
            )
        )


def _none_here(page: Page) -> None:
    """Says that this model has no snapshots, and which models have a training film."""
    st.info(
        labels.markdown(
            _(
                "No snapshots were saved while “{title}” was trained, so there is no training film. Choose one of these models "
                "instead:",
                title=page.info.title,
            )
        ),
        icon=":material/movie:",
    )
    others = [info for info in page.engine.models() if info.snapshots and not info.problem]
    if others:
        st.markdown(f"**{_('Models with a training film')}**")
    for info in others:
        st.button(
            labels.markdown(info.title),
            help=labels.markdown(info.summary),
            key=f"film-of-{info.name}",
            icon=":material/play_circle:",
            on_click=lambda info=info: training_runs.switch(info),
        )
    st.markdown(f"**{_('Record a film of your own training')}**")
    st.caption(
        _(
            "Train with snapshots (saved on a logarithmic schedule) and put the folder into checkpoints/. It will appear "
            "here automatically."
        )
    )
    st.code("python -m model train RECIPE --data FOLDER --out checkpoints/NAME --snapshots log", language=None, wrap_lines=True)
