"""The Streamlit script: navigation, sidebar, the sentence, the run; then the chosen page draws it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from model.engine.base import ModelInfo
from model.errors import HeadlightError, UnknownHead, UnknownModel, UnknownSite
from model.trace import Attention, Site, Trace
from viz import labels, sidebar
from viz.links import View
from viz.page import Page, current_view, say, settle, the_engine
from viz.scheme_change import redraw_on_change
from viz.sentence import sentence_box
from viz.texts import _, sentence
from viz.views import checkpoint, explore, masks, positions, step

STYLE = Path(__file__).parent / "page.css"


def main() -> None:
    """One script run."""
    st.set_page_config(page_title="Headlight", page_icon=str(sidebar.ICON), layout="wide")
    st.html(STYLE)
    with st.sidebar:
        redraw_on_change()
    prepared: list[Page] = []

    def drawing(show: Callable[[Page], None]) -> Callable[[], None]:
        def draw() -> None:
            for page in prepared:
                show(page)

        return draw

    first = st.Page(drawing(explore.show), title=_("Explore"), url_path="explore", icon=":material/grid_view:", default=True)
    diagnosis = st.Page(
        lambda: checkpoint.show(the_engine(), current_view()[0], first),
        title=_("Checkpoint"),
        url_path="checkpoint",
        icon=":material/folder_open:",
    )
    chosen = st.navigation(
        [
            first,
            st.Page(drawing(step.show), title=_("Step through"), url_path="step", icon=":material/step:"),
            st.Page(drawing(masks.show), title=_("Masks"), url_path="masks", icon=":material/visibility_off:"),
            st.Page(drawing(positions.show), title=_("Positions"), url_path="positions", icon=":material/waves:"),
            diagnosis,
        ]
    )
    view, problems = current_view()
    if chosen.url_path == diagnosis.url_path:  # it needs no run, and no model that can be used
        settle(view)
        sidebar.logo()
    else:
        usable, view = _usable(view, problems)
        if usable:
            prepared += _prepare(usable, view, problems)
    for problem in problems:
        say(problem)
    chosen.run()


def _usable(view: View, problems: list[str]) -> tuple[list[ModelInfo], View]:
    """The models that can be used, the one that `view` asks for first; what cannot be had is added to `problems`.

    Returns:
        The models, and the view, without settings where they cannot be used.
    """
    models = list(the_engine().models())
    told = _as_told(view, models)
    if told is not None and told.problem:
        problems.append(told.problem)
    elif told is not None:
        models = [told, *(info for info in models if info.name != told.name)]
    problems += [info.problem for info in models if info.problem]
    usable = sorted((info for info in models if not info.problem), key=lambda info: info.name != view.model)
    if not usable:
        problems.append(_("There is no model here that can be used: put a checkpoint folder into checkpoints/ and reload."))
    elif view.model not in ("", usable[0].name):
        gaps = {"asked": view.model[:40], "shown": usable[0].name}
        problems.append(_("There is no usable model “{asked}” here; “{shown}” is shown instead.", **gaps))
    return usable, view if usable[:1] == [told] else replace(view, settings="")


def _as_told(view: View, models: Sequence[ModelInfo]) -> ModelInfo | None:
    """The model of `view` with its settings; None: it has none and is listed, or is not there."""
    name = view.model or next((info.name for info in models), "")
    if not view.settings and name in [info.name for info in models]:
        return None
    try:
        return the_engine().describe(name, view.told())
    except UnknownModel:
        return None


def _prepare(usable: list[ModelInfo], view: View, problems: list[str]) -> list[Page]:
    """Draws what stands around a page, runs the sentence, and returns what the page is to draw: nothing where that failed."""
    info = usable[0]
    view = replace(view, model=info.name, text=next(iter(info.examples), "") if view.text is None else view.text)
    settle(view)
    sidebar.draw(info, sorted(usable, key=lambda i: i.name), view)
    sentence_box(info)
    try:
        trace, view = _run(view, problems)
    except HeadlightError as error:
        problems.append(sentence(error))
        return []
    sidebar.status(trace)
    attention, view = _select(trace, view, problems)
    settle(view)
    return [Page(the_engine(), info, view, trace, attention, view.head, dark=st.context.theme.type == "dark")]


def _run(view: View, problems: list[str]) -> tuple[Trace, View]:
    """The run of `view`. Where it silences a head that the model does not have, none is silenced."""
    try:
        return the_engine().run(view.request()), view
    except (UnknownSite, UnknownHead):
        gaps = {"heads": view.silence}
        problems.append(_("The link silences a head that this model does not have ({heads}); none is silenced.", **gaps))
        view = replace(view, silence="")
        return the_engine().run(view.request()), view


def _select(trace: Trace, view: View, problems: list[str]) -> tuple[Attention, View]:
    """The site, head, row and step that the view asks for, as far as this run has them; the rest is added to `problems`."""
    default = (trace.of("decoder", "cross") or tuple(trace.attention.values()))[-1]
    asked = Site.parse(view.site) if view.site else default.site
    attention = trace.attention.get(asked, default)
    rows, steps = attention.weights.shape[1], len(trace.steps)
    gaps = {"asked": labels.site(asked), "shown": labels.site(attention.site), "rows": rows, "steps": steps}
    gaps |= {"head": view.head + 1, "heads": attention.heads, "row": view.query + 1, "step": view.step + 1}
    if attention.site != asked:
        problems.append(_("This model has no “{asked}”; “{shown}” is shown instead.", **gaps))
        view = replace(view, query=-1)
    if view.head >= attention.heads:
        problems.append(_("“{shown}” has {heads} heads, so there is no head {head}; head 1 is shown.", **gaps))
        view = replace(view, head=0)
    if view.query >= rows:
        problems.append(_("“{shown}” has {rows} rows in this run, so there is no row {row}; none is selected.", **gaps))
        view = replace(view, query=-1)
    if view.step >= steps:
        problems.append(_("This run has {steps} steps, so there is no step {step}; it begins with the first.", **gaps))
        view = replace(view, step=-1)
    return attention, replace(view, site=str(attention.site))


main()
