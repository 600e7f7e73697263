"""The Streamlit script: navigation, sidebar, the sentence, the run; then the chosen page draws it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from model.engine.api import ModelInfo
from model.errors import EngineAway, UnknownModel
from model.spec.request import Decoding
from viz import asking, away, prepare, sidebar, waiting
from viz.calls import NotKept, NotYet, Stopped
from viz.links import View
from viz.page import Page, current_view, my_engine, say, settle, tell_url
from viz.scheme_change import redraw_on_change
from viz.sentence import sentence_box
from viz.texts import _, problem
from viz.views import checkpoint, compare, explore, masks, positions, step, training

_PAGE, _UNSAID = "page", "unsaid"
DRAWN = Decoding("sample", max_length=24, temperature=0.8, top_k=20)
STYLE = Path(__file__).parent / "page.css"


def main() -> None:
    """One script run."""
    st.set_page_config(page_title="Headlight", page_icon=str(sidebar.ICON), layout="wide")
    st.html(STYLE)
    with st.sidebar:
        redraw_on_change()
    surroundings: list[Surroundings] = []

    def drawing(show: Callable[[Page], None]) -> Callable[[], None]:
        def draw() -> None:
            for each in surroundings:
                _sentence_and_page(each, show)

        return draw

    first = st.Page(drawing(explore.show), title=_("Explore"), url_path="explore", icon=":material/grid_view:", default=True)
    diagnosis = st.Page(
        lambda: _diagnosis(first),
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
            st.Page(drawing(compare.show), title=_("Compare"), url_path="compare", icon=":material/compare:"),
            st.Page(drawing(training.show), title=_("Training"), url_path="training", icon=":material/movie:"),
            diagnosis,
        ]
    )
    view, problems = current_view()
    problems = [*st.session_state.get(_UNSAID, []), *problems]
    if st.session_state.get(_PAGE, chosen.url_path) != chosen.url_path:
        view = replace(view, key=-1)  # a cell that was opened stays on its page
    st.session_state[_PAGE] = chosen.url_path
    if chosen.url_path == diagnosis.url_path:  # it needs no run, and no model that can be used
        settle(view)
        st.session_state.pop(_UNSAID, None)
        sidebar.logo()
    else:
        try:
            with waiting.shown():
                surroundings += _surround(view, problems)
        except EngineAway as error:
            away.wait(error, shown=False)
    if not surroundings:
        for each in dict.fromkeys(problems):
            say(each)
    chosen.run()
    tell_url()


def _diagnosis(explore: StreamlitPage) -> None:
    """The page Checkpoint."""
    with waiting.shown():
        checkpoint.show(my_engine(), current_view()[0], explore)


@dataclass(frozen=True)
class Surroundings:
    """What stands around a page, and stays while something is chosen on the page.

    Attributes:
        info: the model in use.
        view: what the sidebar shows.
        problems: sentences about what could not be done as asked, which are still to be said.
    """

    info: ModelInfo
    view: View
    problems: list[str]


def _surround(view: View, problems: list[str]) -> list[Surroundings]:
    """Draws the sidebar; what is then to be done is a list of one, or of none where no model can be used."""
    if asking.asked_here(view):
        return []
    usable, others, view = _usable(view, problems)
    if not usable:
        return []
    info = usable[0]
    view = replace(view, model=info.name)
    view = _begun(info, view) if view.text is None else view
    if info.reads == "features" and info.translates and not view.target:
        view = replace(view, target=view.text or "")  # it has no words to begin with: its target is drawn like its source
    settle(view)
    sidebar.draw(info, sorted(usable, key=lambda i: i.name), view)
    asking.name_others(others)
    return [Surroundings(info, view, problems)]


@st.fragment
def _sentence_and_page(around: Surroundings, show: Callable[[Page], None]) -> None:
    """The sentence box, and beneath it all that hangs on the sentence. What is typed here runs this function again and no more."""
    sentence_box(around.info)
    _page(around, show, current_view()[0].text)


@st.fragment
def _page(around: Surroundings, show: Callable[[Page], None], text: str | None) -> None:
    """The run of the sentence, and the page that draws it. What is chosen here runs this function again and no more.

    Args:
        text: what the sentence box shows.
    """
    view = current_view()[0]
    if (sidebar.shows(view), view.text) != (sidebar.shows(around.view), text):
        st.rerun()
    foot = st.sidebar.container()  # always, though a run may fail: a fragment cannot begin to write there later
    pages: list[Page] = []
    try:
        with waiting.allowed():
            pages = prepare.prepare(around.info, view, around.problems, foot)
            for each in dict.fromkeys(around.problems):
                say(each)
            around.problems.clear()  # what was said was said
            st.session_state.pop(_UNSAID, None)
            for page in pages:
                show(page)
    except EngineAway as error:  # while the page was drawn, too: it may ask for what was not kept
        away.wait(error, shown=bool(pages))
    except (NotYet, Stopped) as pause:
        waiting.show(pause)
        st.session_state[_UNSAID] = list(around.problems)
        if not pages:
            _show_last(around.info, view, foot, show)
    tell_url()


def _show_last(info: ModelInfo, view: View, foot: DeltaGenerator, show: Callable[[Page], None]) -> None:
    """What the session saw last of the same model, as far as it is kept: it stays while a newer run is on its way."""
    for page in prepare.last_page(info, view, []):
        with foot:
            sidebar.status(page.trace)
        with suppress(NotKept):
            show(page)


def _usable(view: View, problems: list[str]) -> tuple[list[ModelInfo], list[ModelInfo], View]:
    """The models that can be used, the one that `view` asks for first; why it cannot be had is added to `problems`.

    Returns:
        The models, those that cannot be used, and the view, without settings where they cannot be used.
    """
    models = list(my_engine().models())
    told = _as_told(view, models)
    if told is not None and told.problem:
        problems.append(problem(told))
    elif told is not None:
        models = [told, *(info for info in models if info.name != told.name)]
    usable = sorted((info for info in models if not info.problem), key=lambda info: info.name != view.model)
    others = [info for info in models if info.problem]
    problems += [problem(info) for info in others if not usable or (info.name == view.model and told is None)]
    if not usable:
        problems.append(_("There is no model here that can be used: put a checkpoint folder into checkpoints/ and reload."))
    elif view.model not in ("", usable[0].name):
        gaps = {"asked": view.model[:40], "shown": usable[0].name}
        problems.append(_("There is no usable model “{asked}” here; “{shown}” is shown instead.", **gaps))
    return usable, others, view if usable[:1] == [told] else replace(view, settings="")


def _as_told(view: View, models: Sequence[ModelInfo]) -> ModelInfo | None:
    """The model of `view` with its settings; None: it has none and is listed, or is not there."""
    name = view.model or next((info.name for info in models), "")
    if not view.settings and name in [info.name for info in models]:
        return None
    try:
        return my_engine().describe(name, view.told())
    except UnknownModel:
        return None


def _begun(info: ModelInfo, view: View) -> View:
    """A model's first example. A language model draws its words unless told otherwise: the likeliest soon repeat themselves."""
    manner = DRAWN if info.continues else Decoding()
    kept = view.decoding() not in (Decoding(), DRAWN)
    return replace(view, text=next(iter(info.examples), ""), **({} if kept else asdict(manner)))


main()
