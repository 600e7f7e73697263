"""Words for the image that a run read, and which of its patches an edit hides."""

from model.spec.edits import Forbid
from model.spec.request import RunRequest
from model.trace.types import Trace, image_facts
from viz.i18n.translate import _


def name_of(trace: Trace) -> str:
    """The name of the image: that of its file; else what the request calls it."""
    sent = image_facts(trace)
    if sent is None:
        return str(trace.request.get("source") or "")
    return sent.name or _("A drawn scene")


def hidden_positions(trace: Trace) -> tuple[int, ...]:
    """The positions that an edit of the run hides from every head, counted from 0."""
    texts = trace.tokens["source"].texts
    found: set[int] = set()
    for edit in RunRequest.edits_in(trace.request):
        if isinstance(edit, Forbid) and edit.key and edit == Forbid(key=edit.key):
            for token in edit.key:
                found |= {at for at, text in enumerate(texts) if text == token} if isinstance(token, str) else {token}
    return tuple(sorted(at for at in found if 0 <= at < len(texts)))
