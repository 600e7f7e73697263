"""Builds the page of a view: runs its sentence, or asks what the model's file leaves open.

While the engine's host does not answer, the page shows the session's last result, and is redrawn when the host is back.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from weakref import ref

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.engine.api import Describe, Engine, Healthy, ModelInfo, Models, Run
from model.errors import (
    BadEdit,
    CannotChange,
    EngineAway,
    HeadlightError,
    NoStart,
    UnknownHead,
    UnknownHypothesis,
    UnknownModel,
    UnknownSite,
)
from model.trace.types import Attention, Site, Trace
from viz.i18n.translate import _, _n, error_message
from viz.labels import tokens
from viz.session.patient_engine import CachedEngine
from viz.session.state import Page, my_engine, store_view, the_engine
from viz.url.links import SiteSelector, conversing, opening
from viz.url.view_state import WITHOUT_EDITS, ViewState, new_sentence
from viz.views.checkpoint import questions
from viz.widgets import sidebar
from viz.widgets.cards import say

AGAIN_SECONDS = 3
"""How often a page asks whether the engine's host is back."""

_LAST = "last"


@dataclass(frozen=True)
class PageFrame:
    """Everything around a page that stays while something is chosen on the page.

    Attributes:
        info: the model in use.
        view: the state that the sidebar shows.
        problems: sentences, not shown yet, about requests that could not be met.
    """

    info: ModelInfo
    view: ViewState
    problems: list[str]


@dataclass(frozen=True)
class PageSpec:
    """A page that is drawn from a run.

    Attributes:
        show: draws it.
        opens_on: the attention site that it opens on.
        unedited: whether it gets the run without the view's edits, which it then makes itself.
    """

    show: Callable[[Page], None]
    opens_on: SiteSelector
    unedited: bool


def prepare(around: PageFrame, drawn: PageSpec, view: ViewState, foot: DeltaGenerator) -> Page | None:
    """Runs the sentence and returns the page to draw; None if the run failed.

    While the engine's host is away, it is the page of the session's last result, and the request stays in the state. The site that
    a page opens on is not stored in the state: other pages open on others.

    Args:
        view: the state now.
        foot: the end of the sidebar, which names the device of the run.
    """
    info, problems, unedited = around.info, around.problems, drawn.unedited
    try:
        trace, ran = _run(replace(view, **WITHOUT_EDITS) if unedited else view, problems)
        view = replace(view, hypothesis=ran.hypothesis) if unedited else ran
        st.session_state[_LAST] = ref(trace), view  # only the engine's cache holds the trace, so sessions add no memory
    except EngineAway as error:
        if (page := last_page(around, drawn, view)) is None:
            raise
        wait_for_host(error, has_page=True)
        return page
    except HeadlightError as error:
        problems.append(error_message(error))
        if isinstance(error, NoStart):
            questions.ask_here(my_engine(), view)
        return None
    with foot:
        sidebar.status(trace)
    if reason := undrawable(trace):
        problems.append(reason)
        return None
    attention, view = select(trace, view, problems, drawn.opens_on)
    store_view(view)
    return _page(my_engine(), info, view, trace, attention)


def _page(engine: Engine, info: ModelInfo, view: ViewState, trace: Trace, attention: Attention) -> Page:
    """A page on what is selected, in the colors of the browser's page."""
    dark = st.context.theme.type == "dark"
    return Page(engine, info, replace(view, site=str(attention.site)), trace, attention, view.head, dark)


def last_page(around: PageFrame, drawn: PageSpec, view: ViewState, stopped: Trace | None = None) -> Page | None:
    """The page of the session's last result; None if that was another model or is no longer cached.

    Args:
        stopped: what the run of `view` had recorded until it was stopped: shown instead, if there is any.
    """
    trace, before = (stopped, view) if stopped is not None else _last() or (None, view)
    if trace is None or before.model != view.model or undrawable(trace) or (drawn.unedited and trace.request.get("edits")):
        return None
    asked = replace(before, site=view.site, head=view.head, query=view.query)
    attention, before = select(trace, asked, around.problems, drawn.opens_on)
    return _page(CachedEngine(the_engine()), around.info, before, trace, attention)


def example_page(around: PageFrame, drawn: PageSpec, view: ViewState) -> Page | None:
    """The page of the model's first example, where the text of a link cannot be run and there is no last result; None if that
    cannot be run either.
    """
    example = opening(around.info, view.changed(**WITHOUT_EDITS, **new_sentence(), target="", chat=""))
    example = conversing(around.info, example)
    try:
        trace = my_engine().ask(Run(example.request()))
    except EngineAway:
        raise
    except HeadlightError:
        return None
    if undrawable(trace):
        return None
    attention, example = select(trace, example, [], drawn.opens_on)
    return _page(my_engine(), around.info, example, trace, attention)


def _run(view: ViewState, problems: list[str]) -> tuple[Trace, ViewState]:
    """The run of `view`. If it silences a head that the model does not have, none is silenced; if one of its edits cannot be made,
    all are left out; if it asks for a hypothesis that
    does not exist, the best one is shown.
    """
    try:
        return my_engine().ask(Run(view.request())), view
    except UnknownHypothesis as error:
        number, count = view.hypothesis + 1, int(str(error.fields["last"])) + 1
        sentence = _(
            "There is no hypothesis {number}: the search returned {count}. Showing the best one.", number=number, count=count
        )
        problems.append(sentence)
        return _run(replace(view, hypothesis=0), problems)
    except (BadEdit, CannotChange, UnknownSite, UnknownHead) as error:
        if view.edits:
            problems.append(_("The edits of this link were ignored. {problem}", problem=error_message(error)))
            return _run(replace(view, edits=""), problems)
        text = _("This link silences heads that this model does not have ({heads}). No head was silenced.", heads=view.silence)
        problems.append(text)
        view = replace(view, silence="")
        return my_engine().ask(Run(view.request())), view


def undrawable(trace: Trace) -> str:
    """Sentence that says why a run cannot be drawn; empty if it can."""
    if not trace.attention:
        return _("This run contains no attention, so there is nothing to show here.")
    if trace.is_finite:
        return ""
    if trace.model["dtype"] != "float32":
        return _("The numbers of this run do not fit into {dtype}. Choose float32 as the precision.", dtype=trace.model["dtype"])
    return _(
        "This run produced NaN or infinite values, so there is nothing to draw. Weights of the model are not finite (the "
        "Checkpoint page lists them), or so large that a result does not fit into float32."
    )


def select(trace: Trace, view: ViewState, problems: list[str], opens_on: SiteSelector) -> tuple[Attention, ViewState]:
    """The site, and the view with what this run has of head, row and step; `problems` gets a sentence for each that it lacks.

    A view that asks for no site, or for one that is not there, is returned without a site.
    """
    default = opens_on(trace)
    asked = Site.parse(view.site) if view.site else default.site
    attention = trace.attention.get(asked, default)
    name = tokens.site(attention.site)
    (_heads, rows, keys), steps = attention.weights.shape, len(trace.steps)
    if attention.site != asked:
        problems.append(_("This model has no “{asked}”. Showing “{shown}” instead.", asked=tokens.site(asked), shown=name))
        view = replace(view, site="", query=-1, key=-1)
    if view.head >= attention.heads:
        problems.append(
            _n(
                "“{shown}” has {heads} head, so head {head} does not exist. Showing head 1.",
                "“{shown}” has {heads} heads, so head {head} does not exist. Showing head 1.",
                attention.heads,
                shown=name,
                heads=attention.heads,
                head=view.head + 1,
            )
        )
        view = replace(view, head=0)
    if view.key >= keys:
        problems.append(
            _n(
                "“{shown}” has {keys} key in this run, so key {key} does not exist. No cell is opened.",
                "“{shown}” has {keys} keys in this run, so key {key} does not exist. No cell is opened.",
                keys,
                shown=name,
                keys=keys,
                key=view.key + 1,
            )
        )
        view = replace(view, key=-1)
    if view.query >= rows:
        problems.append(
            _n(
                "“{shown}” has {rows} row in this run, so row {row} does not exist. No row is selected.",
                "“{shown}” has {rows} rows in this run, so row {row} does not exist. No row is selected.",
                rows,
                shown=name,
                rows=rows,
                row=view.query + 1,
            )
        )
        view = replace(view, query=-1, key=-1)
    if view.step >= steps:
        problems.append(
            _n(
                "This run has {steps} step, so step {step} does not exist. Starting at the first.",
                "This run has {steps} steps, so step {step} does not exist. Starting at the first.",
                steps,
                steps=steps,
                step=view.step + 1,
            )
        )
        view = replace(view, step=-1)
    return attention, view


def _last() -> tuple[Trace, ViewState] | None:
    """The session's last result; None if there is none yet or the engine's cache has evicted it."""
    last: tuple[ref[Trace], ViewState] | None = st.session_state.get(_LAST)
    if last is None or (trace := last[0]()) is None:
        return None
    return trace, last[1]


def has_run(model: str) -> bool:
    """Whether the session's last result is one of this model: the first run of another one opens it, which takes seconds."""
    return (last := _last()) is not None and last[1].model == model


def wait_for_host(error: EngineAway, has_page: bool) -> None:
    """Says that the host is away, and redraws the page once it answers.

    Args:
        has_page: whether the page shows the last result.
    """
    seconds = error.fields["seconds"]
    if has_page:
        say(_("The engine has not answered for {seconds} s. Showing the last result until it is back.", seconds=seconds))
    else:
        say(error_message(error))
        if _LAST in st.session_state and _last() is None:
            say(_("The last result is no longer available. The page is drawn again as soon as the engine answers."))
    _look_again()


@st.fragment(run_every=AGAIN_SECONDS)
def _look_again() -> None:
    if the_engine().ask(Healthy()):
        st.rerun()


def asked_here(view: ViewState) -> bool:
    """Draws the open questions of the model that `view` names; returns False if there are none."""
    try:
        asked = my_engine().ask(Describe(view.model, view.parsed_settings())) if view.model else None
    except (UnknownModel, EngineAway):  # while the host is away, its last list of models is known
        return False
    if asked is None or asked.problem.get("error") != "OpenQuestions":
        return False
    store_view(view)
    sidebar.models(
        {asked.name: asked.title} | {info.name: info.title for info in my_engine().ask(Models()).models if not info.problem}
    )
    questions.ask_here(my_engine(), view)
    return True


def is_opening(info: ModelInfo) -> bool:
    """Whether a model's files are still being opened."""
    return info.problem.get("error") == "StillOpening"
