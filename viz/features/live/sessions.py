"""Live sessions: what the browser of one Streamlit session may ask for, under a token that only its pages know.

Beside the sentence it may change what the live route draws before the page's script knows it: seed, temperature, silenced heads.
`switch` mounts the script that listens to the sentence box of Explore.
"""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import streamlit as st

from model.engine.api import ModelInfo, Run
from model.errors import BadSetting
from model.requests.sent_text import whole_number
from model.trace.types import Trace
from viz.canvas.assets import BASE, read
from viz.canvas.wire import strings, transport
from viz.i18n import translate
from viz.i18n.translate import _
from viz.session.background_calls import Call, Calls
from viz.session.patient_engine import NonBlockingEngine, my_calls
from viz.session.state import Page, get_view_state, my_engine, update
from viz.url import links, view_state
from viz.url.view_state import ViewState, new_sentence
from viz.views import run_page
from viz.views.explore import reading
from viz.widgets import sentence_box

_KEY = "live-session"

NAMES = ("seed", "temperature", "silence")
"""URL parameters that may be changed."""

ANEW = ("seed", "temperature")
"""Those after which the model writes another text, as on the page."""


@dataclass(frozen=True)
class Question:
    """A question of a browser: the run that it wants to be drawn.

    Attributes:
        text: the sentence; None: the page's own, with everything that was chosen for it.
        fields: fields of `viz.url.view_state.ViewState` that are changed.
    """

    text: str | None
    fields: Mapping[str, Any] = field(default_factory=dict)


def fields_of(change: object) -> dict[str, Any]:
    """The fields of ViewState that a browser's report changes; it is written as in a URL, by the parameters in NAMES.

    Raises:
        ValueError: the report is of another form, or a value is not allowed.
    """
    if not isinstance(change, Mapping) or not all(name in NAMES and isinstance(text, str) for name, text in change.items()):
        raise ValueError
    view, problems = links.read(change)
    if problems:
        raise ValueError(problems[0])
    chosen = {p.field: view.value(p) for p in view_state.all_parameters() if p.name in change}
    return (new_sentence() if any(name in ANEW for name in change) else {}) | chosen


@dataclass(frozen=True)
class PageContext:
    """The state of the page around the sentence.

    Attributes:
        info: the model in use.
        view: the state of the session; its text is that of the last script run.
        engine: answers for this session, and waits without limit.
        context: context variables of the script run, such as its language.
    """

    info: ModelInfo
    view: ViewState
    engine: NonBlockingEngine
    context: Context

    def of(self, question: Question) -> ViewState:
        """The view that a question asks for."""
        text, same = question.text, question.text in (None, self.view.text)
        return (self.view if same else self.view.changed(text=text, **new_sentence())).changed(**question.fields)

    def note(self, view: ViewState, trace: Trace) -> str:
        """What is said of a sentence that this model does not read; empty if it fits, or if the page itself says so."""
        if view.text == self.view.text:
            return ""
        found = self.context.copy().run(sentence_box.finding, self.info, trace, self.engine)
        return found.sentence if found else ""

    def scenes(self, view: ViewState, trace: Trace, partial: bool) -> dict[str, bytes]:
        """The scenes of Explore, made as the page makes them.

        Args:
            view: the view whose run `trace` is.
            partial: whether the run still decodes: a reading that needs a second run is left out then.
        """
        return self.context.copy().run(self._scenes, view, trace, partial)

    def _scenes(self, view: ViewState, trace: Trace, partial: bool) -> dict[str, bytes]:
        attention, view = run_page.select(trace, view, [], Trace.last_cross)
        view = replace(view, site=str(attention.site))
        page = Page(self.engine, self.info, view, trace, attention, view.head, dark=False)
        overview = reading.overview(page, writes=partial)
        if partial and view.reading == "value":
            return overview
        as_they_ran = view.reading == "head" and reading.hides(page) == "none"
        return overview | reading.selected_head(page, None if as_they_ran else reading.of_page(page))


class LiveSession:
    """The live pictures of one browser session.

    Attributes:
        token: names this session in the route; 192 random bits.
        page: what the page shows; None: no page was drawn yet.
        calls: the calls of the session, which its button Stop ends.
    """

    def __init__(self, calls: Calls) -> None:
        self.token = secrets.token_urlsafe(24)
        self.page: PageContext | None = None
        self.calls = calls
        BY_TOKEN[self.token] = self

    def ask(self, page: PageContext, run: Run) -> Call:
        """Starts a run; an older one of this session ends, unless a page waits for it, too."""
        return self.calls.start_live(run, lambda: page.engine.ask(run))

    def current(self, page: PageContext, question: Question) -> tuple[PageContext, ViewState]:
        """What the page shows now, with another head or row perhaps; as given, if it shows another run by now."""
        newer, view = self.page or page, page.of(question)
        if newer is page:
            return page, view
        there = newer.of(replace(question, text=view.text))
        return (newer, there) if there.request() == view.request() else (page, view)


BY_TOKEN: WeakValueDictionary[str, LiveSession] = WeakValueDictionary()
"""The live sessions of the process. A session ends with the Streamlit session that holds it."""


def my_live() -> LiveSession:
    """The live session of this script run."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = LiveSession(my_calls())
    found: LiveSession = st.session_state[_KEY]
    return found


def attend(info: ModelInfo, view: ViewState) -> None:
    """Passes what the page shows now to the live session."""
    engine = my_engine()
    assert isinstance(engine, NonBlockingEngine)
    translate.current()  # the context remembers it from now on: the route cannot ask the session
    my_live().page = PageContext(info, view, replace(engine, session=engine.session.typing), copy_context())


HERE = Path(__file__).parent
_SCRIPTS = ("choices.js", "leaving.js", "answer.js", "history.js", "page_script.js", "live.js")
PAUSE_MS, LONGEST_MS = 120, 10_000
"""How long typing must pause until the sentence so far is shown, if HEADLIGHT_LIVE does not say it; and the longest such pause."""

_BOX = st.components.v2.component(
    "headlight.live",
    html='<button type="button" role="switch"></button>'
    '<div class="under"><p class="said" role="status"></p><button type="button" class="stop" hidden></button></div>',
    css=(HERE / "live.css").read_text(encoding="utf-8"),
    js="\n".join((read(*BASE), *((HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS))),
)


def pause_ms() -> int:
    """The pause of HEADLIGHT_LIVE in milliseconds; 0: nothing is shown while somebody types.

    Raises:
        BadSetting: it is not a valid number.
    """
    if not (asked := os.environ.get("HEADLIGHT_LIVE")):
        return PAUSE_MS
    if (found := whole_number(asked, 0, LONGEST_MS)) is None:
        raise BadSetting(name="HEADLIGHT_LIVE", found=asked[:40], allowed=f"a whole number of ms from 0 to {LONGEST_MS:,}")
    return found


def switch() -> None:
    """Mounts the script with its switch; nothing if the server turned it off."""
    if not (pause := pause_ms()):
        return
    texts = {
        "live": _("Live"),
        "help": _("Show the sentence while you type"),
        "how_far": strings.how_far(),
        "stop": _("Stop"),
    }
    view = get_view_state()[0]
    data = {
        "path": f"{transport.address()}/live/{my_live().token}",
        "pause": pause,
        "texts": texts,
        "text": view.text or "",
        "seed": view.seed,
        "samples": view.method == "sample" and not view.target,
        "silence": view.silence,
        "silences": not (view.edits or view.off),
    }
    _BOX(key="live", data=data, on_changed_change=_take, width="content", height="content")


def _take() -> None:
    """Takes what a person changed and the route has drawn."""
    with suppress(ValueError):
        update(**fields_of(st.session_state["live"].get("changed")))
