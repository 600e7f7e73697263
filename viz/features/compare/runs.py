"""The two runs of Compare: each side decodes by itself, or both read the tokens that the first side wrote."""

from dataclasses import dataclass, replace

from model.engine.api import Describe, Run, Texts
from model.errors import HeadlightError
from model.requests.request import RunRequest
from model.trace.types import Trace
from viz.features.compare.view import CompareView, second_side
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.session.state import Page
from viz.url.links import conversing
from viz.url.view_state import ViewState


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of both sides.

    Attributes:
        first, second: what ran.
        since: the first position of the written strip that the first side wrote when it decoded.
        fed: whether both sides read the tokens that the first side wrote.
        problem: why they do not, although they should; empty if there is no reason.
    """

    first: Trace
    second: Trace
    since: int
    fed: bool = False
    problem: str = ""


def runs(page: Page) -> Runs | str:
    """The runs of both sides, or a sentence that says why the second side cannot run."""
    try:
        view = second_view(page)
        second = page.engine.ask(Run(view.request()))
    except HeadlightError as error:
        return error_message(error)
    free = Runs(page.trace, second, since(page.trace))
    return fed(page, view, free) if page.view.of(CompareView).feed == "first" else free


def second_view(page: Page) -> ViewState:
    """The view of the second side.

    Raises:
        HeadlightError: its model cannot be opened.
    """
    view = second_side(page.view)
    if view.model == page.view.model:
        return view
    return conversing(page.engine.ask(Describe(view.model, view.parsed_settings())), view)


def fed(page: Page, view: ViewState, free: Runs) -> Runs:
    """The runs in which both sides read what the first one wrote; the free ones where it wrote nothing, or with a sentence why not.

    Args:
        page: the first side.
        view: of the second side.
        free: each side's own decode.
    """
    if not page.trace.steps or page.info.recorded:
        return free
    if (given := page.view.request().target) is not None and given == view.request().target:
        return free  # both read it already, and without the end token, which the last row of each should predict
    if not _same_vocabulary(page, view):
        return replace(free, problem=_("The two models have different vocabularies, so side B cannot read the tokens of side A."))
    try:
        first, second = (
            page.engine.ask(Run(_fed(v.request(), trace, free))) for v, trace in ((page.view, page.trace), (view, free.second))
        )
    except HeadlightError as error:
        return replace(free, problem=_("Side B cannot read the tokens of side A: {reason}", reason=error_message(error)))
    return replace(free, first=first, second=second, fed=True)


def since(trace: Trace) -> int:
    """The first position that a step wrote; 0 if none did."""
    return min((step.computed[1] for step in trace.steps), default=0)


def _fed(request: RunRequest, trace: Trace, free: Runs) -> RunRequest:
    """`request`, reading what the first side wrote. A language model reads it after its own prompt, and writes nothing more.

    Args:
        trace: the side's own decode.
        free: both sides' own decodes.
    """
    written = free.first.tokens[tokens.written_strip(free.first)].ids
    if "target" in trace.tokens:
        return replace(request, target=written, begin=())
    prompt = trace.tokens["source"].ids[: since(trace)]
    return replace(request, source=prompt + written[free.since :], decoding=replace(request.decoding, max_length=0), begin=())


def _same_vocabulary(page: Page, second: ViewState) -> bool:
    """Whether the ids of side A's tokens have the same texts in side B's model."""
    if second.model == page.view.model and second.settings == page.view.settings:
        return True
    strip = tokens.written_strip(page.trace)
    try:
        texts = [
            page.engine.ask(Texts(v.model, strip=strip, ids=page.trace.tokens[strip].ids, settings=v.parsed_settings()))
            for v in (page.view, second)
        ]
    except HeadlightError:
        return False
    return texts[0] == texts[1]
