"""The Streamlit script: navigation, sidebar, sentence box, the run, and the chosen page."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from model.engine.api import Describe, ModelInfo, Models
from model.errors import EngineAway, UnknownModel
from model.trace.types import Trace
from viz.feature import FeaturePage, draw_parts, features
from viz.i18n.translate import _, problem, speak, translated
from viz.session import patient_engine, visits
from viz.session.background_calls import NotCached, Pending, Stopped
from viz.session.state import (
    FIRST_PICTURE,
    Page,
    get_view_state,
    instead_of_explore,
    keep_pages,
    my_engine,
    opened,
    page_at,
    remember,
    session_language,
    store_view,
    sync_url,
)
from viz.url.links import SiteSelector, conversing, opening
from viz.url.view_state import ViewState
from viz.views import mask_panels, masks, positions, run_page
from viz.views.checkpoint import opener, uploads
from viz.views.checkpoint import page as checkpoint
from viz.views.explore import page as explore
from viz.views.page_panels import pages_of_steps
from viz.views.run_page import PageFrame, PageSpec
from viz.views.step import page as step
from viz.widgets import conversation, media_box, recorded_run, sidebar
from viz.widgets.appearance import big_mode_button, big_mode_style, redraw_on_change
from viz.widgets.cards import banner, say
from viz.widgets.sentence_box import remark_on_language, sentence_box

_PAGE, _UNSAID = "page", "unsaid"
STYLE = Path(__file__).parent / "widgets" / "page.css"


MEDIA = ("image", "sound")
"""What models read that are given a file."""


def main() -> None:
    """One script run, in an order on which much depends; the comments say what."""
    # Streamlit is told of the pages before the sidebar is drawn, which decides what surrounds them: a page looks for its frame when
    # it runs.
    frame: PageFrame | None = None

    def drawing(
        show: Callable[[Page], None], opens_on: SiteSelector = Trace.last_cross, unedited: bool = False
    ) -> Callable[[], None]:
        return lambda: None if frame is None else _sentence_and_page(frame, PageSpec(show, opens_on, unedited))

    speak(session_language())  # the titles of the pages are the first texts
    pages = _pages(drawing)
    begins = FIRST_PICTURE not in st.session_state
    if begins:
        visits.begin({page.url_path for page in pages} - {""})  # decides whether the sidebar begins folded
    _configure()
    chosen = st.navigation(pages)
    keep_pages(pages)
    _lead_elsewhere(chosen, pages, begins)  # before the state is read: on the other page it would be read again
    view, problems = _view_on(chosen.url_path)
    if chosen.url_path in {"checkpoint", *_pages_without_a_run()}:
        store_view(view)
        st.session_state.pop(_UNSAID, None)
        sidebar.logo()
    else:
        try:
            with patient_engine.show_pending():
                frame = _frame(view, problems)
        except EngineAway as error:
            run_page.wait_for_host(error, has_page=False)
    if frame is None:
        for sentence in dict.fromkeys(problems):
            say(sentence)
    chosen.run()
    _end_sidebar(frame, chosen.url_path or "explore")  # after the page, which takes a place in the sidebar for what ran
    reads = "" if frame is None else frame.info.reads
    uploads.take_drops(my_engine(), media_box.refuse if reads in MEDIA else None)
    sync_url()  # last: it costs a browser as much time as a drawing


def _configure() -> None:
    """Sets what holds for the whole window."""
    settings: Literal["collapsed", "auto"] = "collapsed" if instead_of_explore() == "first" else "auto"
    st.set_page_config(page_title="Headlight", page_icon=str(sidebar.ICON), layout="wide", initial_sidebar_state=settings)
    st.html(STYLE)
    big_mode_style()
    with st.sidebar:
        redraw_on_change()


def _lead_elsewhere(chosen: StreamlitPage, pages: Sequence[StreamlitPage], begins: bool) -> None:
    """Leads to another page, and ends this script run: to the one that a returning visitor left, or to a file that came.

    Args:
        begins: whether the session begins.
    """
    if chosen.url_path and instead_of_explore() == "first":
        visits.leave_first_picture()
    if begins and (left := visits.take_left()) and left[0] not in _pages_without_a_run():
        for page in pages:
            if page.url_path == left[0]:
                st.switch_page(page, query_params=left[1])
    if uploads.arrived() and chosen.url_path != "checkpoint":
        st.switch_page(page_at("checkpoint"))


def _view_on(path: str) -> tuple[ViewState, list[str]]:
    """The state on a page, and the sentences about bad parameters that were not shown yet."""
    view, problems = get_view_state()
    if st.session_state.get(_PAGE, path) != path:
        view = replace(view, key=-1)  # an open calculation belongs to its page
    st.session_state[_PAGE] = path
    return view, [*st.session_state.get(_UNSAID, []), *problems]


def _end_sidebar(frame: PageFrame | None, path: str) -> None:
    """Draws the end of the sidebar, and the dialog that one of its buttons opens.

    Args:
        path: of the page.
    """
    if frame is not None and path in pages_of_steps():
        with st.sidebar:
            draw_parts("sidebar", path)
    if frame is not None and st.session_state.get(sidebar.ASKS):
        opener.dialog()
    sidebar.languages()
    if frame is not None:
        draw_parts("help")
    big_mode_button(get_view_state()[0])


def _pages_without_a_run() -> set[str]:
    """Paths of the pages of features that are drawn without the sentence box."""
    return {page.path for feature in features() for page in feature.pages if not page.needs_run}


def _pages(drawing: Callable[..., Callable[[], None]]) -> list[StreamlitPage]:
    """The pages, as the navigation lists them.

    Args:
        drawing: makes what draws a page from its `show` and the other fields of PageSpec.
    """

    def entry(show: Callable[[], None], title: str, path: str, icon: str, default: bool = False) -> StreamlitPage:
        return st.Page(show, title=title, url_path=path, icon=f":material/{icon}:", default=default)

    def brought(page: FeaturePage) -> StreamlitPage:
        show = drawing(page.show, page.opens_on or Trace.last_cross, page.unedited) if page.needs_run else page.show
        return entry(show, translated(page.title), page.path, page.icon)

    def diagnosis() -> None:
        with patient_engine.show_pending():
            checkpoint.show(my_engine(), get_view_state()[0], first)

    of_features = list(chain.from_iterable(feature.pages for feature in features()))
    first = entry(drawing(explore.show), _("Explore"), "explore", "grid_view", default=True)
    return [
        first,
        entry(drawing(step.show), _("Step through"), "step", "step"),
        entry(drawing(masks.show, mask_panels.opens_on), _("Masks"), "masks", "visibility_off"),
        entry(drawing(positions.show), _("Positions"), "positions", "waves"),
        *(brought(page) for page in of_features if page.needs_run),
        entry(diagnosis, _("Checkpoint"), "checkpoint", "folder_open"),
        *(brought(page) for page in of_features if not page.needs_run),
    ]


def _frame(view: ViewState, problems: list[str]) -> PageFrame | None:
    """Draws the sidebar. Returns None if no model can be used, or if the page asks the questions of its file instead."""
    if run_page.asked_here(view):
        return None
    usable, others, view = _usable(view, problems)
    if not usable:
        return None
    info = usable[0]
    view = replace(view, model=info.name)
    before = opened()
    remember(info)
    if info.recorded:
        view = recorded_run.as_it_ran(view, problems)
    view = opening(info, view, before) if view.text is None else view
    if view.chats and not info.chats and not info.recorded:
        problems.append(_("This model has no chat template, so the earlier turns of this link were ignored."))
    view = conversing(info, view)
    if info.reads == "features" and info.translates and not view.target and not info.spec["decoder"]["vocab"]:
        view = replace(view, target=view.text or "")  # it has no example words: its target is random like its source
    store_view(view)
    sidebar.draw(info, sorted(usable, key=lambda i: i.name), view)
    sidebar.waiting(others)
    return PageFrame(info, view, problems)


# The next two functions are fragments of Streamlit: parts of a page that can run again without the rest. Four rules shape them:
# 1. A widget reruns the innermost fragment that it was drawn in: the sentence box both of them, a choice on the page only `_page`.
# 2. A fragment that runs again gets the arguments of its last call. So `around` may be older than a choice: the view is read anew,
#    and `around.problems` is emptied when it was shown.
# 3. It may draw in its own place, and elsewhere only where it drew in the whole run. So the foot of the sidebar is taken in every
#    run, and what the sidebar itself shows changes by a whole run alone (`st.rerun`).
# 4. It runs in a new thread, without the context variables of the whole run: the session says the language (`translate.current`).


@st.fragment
def _sentence_and_page(around: PageFrame, drawn: PageSpec) -> None:
    """Draws the sentence box and everything that depends on the sentence. A new sentence reruns only this function."""
    follows = drawn.show is explore.show and not instead_of_explore()
    sentence_box(around.info, partial(draw_parts, "sentence") if follows else lambda: None)
    _page(around, drawn, get_view_state()[0].text)


@st.fragment
def _page(around: PageFrame, drawn: PageSpec, text: str | None) -> None:
    """Runs the sentence and draws the page. A choice on the page reruns only this function.

    Args:
        text: the text of the sentence box.
    """
    view = get_view_state()[0]
    if around.info.recorded:  # a click in a drawing may ask for another run, such as another next token
        view = recorded_run.as_it_ran(view, around.problems)
        store_view(view)
    if (sidebar.shows(view), view.text) != (sidebar.shows(around.view), text):
        st.rerun()
    if drawn.show is explore.show and not instead_of_explore():
        draw_parts("run", around.info, view)
    foot = st.sidebar.container()  # always, even if the run fails: a fragment cannot start writing there later
    page: Page | None = None
    talk = media_box.place_media(around.info) if around.info.reads in MEDIA else conversation.place_conversation(around.info, view)
    try:
        with patient_engine.raise_if_slow():
            page = run_page.prepare(around, drawn, view, foot)
            talk(page.trace if page else None, page is None)
            problems = list(dict.fromkeys(around.problems))
            for sentence in problems:
                say(sentence)
            around.problems.clear()  # each sentence is shown once
            st.session_state.pop(_UNSAID, None)
            if page is not None:
                banner(page)
                remark_on_language(page)
                drawn.show(page)
            else:  # the sentence cannot be run: the last picture stays, or an example stands in, and steps back
                with st.container(key="stale"):
                    if not _show_last(around, drawn, view, foot, None) and (page := run_page.example_page(around, drawn, view)):
                        st.caption(_("Shown instead: the first example of this model."))
                        _show(page, drawn, foot)
            if patient_engine.waits():  # a part of the page: when its answer is there, all is drawn again
                around.problems[:] = st.session_state[_UNSAID] = problems
    except EngineAway as error:  # also while the page is drawn: it may request what is not cached
        if page is None:
            talk(None, True)
        run_page.wait_for_host(error, has_page=page is not None)
    except (Pending, Stopped) as pause:
        patient_engine.show(pause, opens="" if run_page.has_run(view.model) else around.info.title)
        st.session_state[_UNSAID] = list(around.problems)
        if page is None:
            stopped = pause.trace if isinstance(pause, Stopped) else None
            talk(stopped, isinstance(pause, Stopped))
            _show_last(around, drawn, view, foot, stopped)
    sync_url()


def _show_last(around: PageFrame, drawn: PageSpec, view: ViewState, foot: DeltaGenerator, stopped: Trace | None) -> bool:
    """Draws what a stopped run had written; else the session's last result with the same model. Returns False if there is none."""
    if page := run_page.last_page(replace(around, problems=[]), drawn, view, stopped):
        _show(page, drawn, foot)
    return page is not None


def _show(page: Page, drawn: PageSpec, foot: DeltaGenerator) -> None:
    """Draws a page of another run than the one that was asked for, as far as its parts are cached."""
    with foot:
        sidebar.status(page.trace)
    banner(page)
    with suppress(NotCached):
        drawn.show(page)


def _usable(view: ViewState, problems: list[str]) -> tuple[list[ModelInfo], list[ModelInfo], ViewState]:
    """The usable models, the one that `view` asks for first; if it is not usable, the reason is added to `problems`.

    Returns:
        The usable models, the others, and the view, without its settings if they do not apply.
    """
    models = sorted(my_engine().ask(Models()).models, key=lambda info: not info.translates)  # a new visitor sees a translation
    name = view.model or next((info.name for info in models), "")
    wanted: ModelInfo | None = None
    # One that is still being opened is waited for, if it was asked for: the list does not wait for it.
    listed = name in [info.name for info in models if not (view.model and run_page.is_opening(info))]
    if view.settings or not listed:
        with suppress(UnknownModel):
            wanted = my_engine().ask(Describe(name, view.parsed_settings()))
    if wanted is not None:
        view = replace(view, model=wanted.name)  # that of a Hub's model names the commit from now on
    if wanted is not None and wanted.problem:
        problems.append(problem(wanted))
    elif wanted is not None:
        models = [wanted, *(info for info in models if info.name != wanted.name)]
    usable = sorted((info for info in models if not info.problem), key=lambda info: info.name != view.model)
    others = [info for info in models if info.problem]
    problems += [problem(info) for info in others if not usable or (info.name == view.model and wanted is None)]
    if not usable:
        problems.append(_("No usable model found. Put a checkpoint folder into checkpoints/ and reload."))
    elif view.model not in ("", usable[0].name):
        names = {"asked": view.model[:40], "shown": usable[0].name}
        problems.append(_("There is no usable model “{asked}” here. Showing “{shown}” instead.", **names))
    return usable, others, view if usable[:1] == [wanted] else replace(view, settings="")


main()
