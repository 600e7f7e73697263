"""The runs that the page What if compares: decoded freely and fed with what was written before, without and with the edits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from model.errors import HeadlightError
from model.inspection.finite import is_finite
from model.spec.edits import Edit
from model.spec.request import Decoding, RunRequest
from model.trace.types import Trace
from viz import labels
from viz.page import Page
from viz.texts import _, sentence


@dataclass(frozen=True, eq=False)
class Fed:
    """Two runs that read the same tokens: what was written before, but for its last token, which is written and not read.

    Attributes:
        before, now: without and with the edits.
        first: position of the first token that the model wrote, or was given as its target.
    """

    before: Trace
    now: Trace
    first: int


def fed(page: Page, edits: Sequence[Edit]) -> Fed | str:
    """The two fed runs, or a sentence that says why there are none.

    Args:
        page: its trace is the run without edits.
    """
    request = fed_request(page)
    try:
        before, now = (page.engine.run(replace(request, edits=one)) for one in ((), tuple(edits)))
    except HeadlightError as error:
        return sentence(error)
    if not is_finite(now):
        return _("With these edits the run produces NaN or infinite values, so there is nothing to draw. Switch one off.")
    tokens = page.trace.tokens
    return Fed(replace(before, tokens=tokens), replace(now, tokens=tokens), first_written(page.trace))


def fed_request(page: Page) -> RunRequest:
    """The request that reads what the run without edits wrote; a given target, and vectors, are read as they are."""
    request, strip = replace(page.view.request(), edits=()), labels.written_strip(page.trace)
    ids = page.trace.tokens[strip].ids
    if page.view.target or not page.trace.steps or not ids:
        return request
    if strip == "target":
        return replace(request, target=ids[:-1], decoding=Decoding())
    return replace(request, source=ids[:-1], decoding=Decoding(max_length=0))


def free(page: Page, edits: Sequence[Edit]) -> Trace | str:
    """What the model writes by itself with these edits, or a sentence that says why it cannot."""
    try:
        found = page.engine.run(replace(page.view.request(), target=None, edits=tuple(edits)))
    except HeadlightError as error:
        return sentence(error)
    return found if is_finite(found) else _("With these edits the run produces NaN or infinite values, so it generates nothing.")


def writes_freely(page: Page) -> bool:
    """Whether the model can decode by itself: it has an output layer, and reads words or ids."""
    return page.info.writes and page.info.reads != "features"


def first_written(trace: Trace) -> int:
    """Position of the first token that a model wrote, in the strip that is written."""
    return min((step.computed[1] for step in trace.steps), default=1)
