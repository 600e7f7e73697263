"""From the link of a step to its run, without a script: the model, the sentence, the site and the head that the app would show."""

from dataclasses import replace

from model.engine.api import Describe, Engine, ModelInfo, Models, Run
from model.errors import OpenQuestions, UnknownModel
from model.trace.types import Trace
from viz.i18n.translate import _, problem
from viz.panels import NotDrawable
from viz.session.state import Page, selected
from viz.url.links import SiteSelector, conversing, opening
from viz.url.view_state import WITHOUT_EDITS, ViewState


def headless_page(engine: Engine, view: ViewState, opens_on: SiteSelector = Trace.last_cross, unedited: bool = False) -> Page:
    """The run of a view and what is selected in it.

    Args:
        unedited: whether to leave the edits of the view out.

    Raises:
        HeadlightError: the model or the run is not possible.
        NotDrawable: the run has no attention, or numbers that cannot be drawn.
    """
    info = _info(engine, view)
    view = _begun(info, replace(view, model=info.name))
    request = (replace(view, **WITHOUT_EDITS) if unedited else view).request()
    trace = engine.ask(Run(request))
    if not trace.attention:
        raise NotDrawable(_("This run contains no attention, so there is nothing to show here."))
    if not trace.is_finite:
        raise NotDrawable(_("This run produced NaN or infinite values, so there is nothing to draw."))
    return selected(Page(engine, info, view, trace, opens_on(trace), 0, dark=False), view)


def _info(engine: Engine, view: ViewState) -> ModelInfo:
    if not view.model:
        info = next((info for info in engine.ask(Models()).models if not info.problem), None)
        if info is None:
            raise NotDrawable(_("No usable model found. Put a checkpoint folder into checkpoints/ and reload."))
        return info
    try:
        info = engine.ask(Describe(view.model, view.parsed_settings()))
    except (UnknownModel, OpenQuestions) as error:
        raise NotDrawable(_("There is no usable model “{asked}” here.", asked=view.model[:40])) from error
    if info.problem:
        raise NotDrawable(problem(info))
    return info


def _begun(info: ModelInfo, view: ViewState) -> ViewState:
    """The view with a sentence: the model's first example if the link has none."""
    if view.text is not None:
        return conversing(info, view)
    view = conversing(info, opening(info, view))
    random = info.reads == "features" and info.translates and not view.target
    return replace(view, target=view.text or "") if random else view
