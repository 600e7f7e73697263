"""Words for the image that a run read, and which of its patches an edit hides."""

from collections.abc import Iterable, Sequence

from model.spec.edits import Edit, Forbid
from model.trace.types import Trace, image_facts
from viz.i18n.translate import _


def name_of(trace: Trace) -> str:
    """The name of the image: that of its file; else what the request calls it."""
    sent = image_facts(trace)
    if sent is None:
        return str(trace.request.get("source") or "")
    return sent.name or _("A drawn scene")


def hidden_positions(edits: Iterable[Edit], texts: Sequence[str]) -> tuple[int, ...]:
    """The positions that edits hide from every head of a network that reads an image, counted from 0.

    Args:
        edits: those of its run.
        texts: the names of its tokens.
    """
    found: set[int] = set()
    for edit in edits:
        if isinstance(edit, Forbid) and hides(edit):
            for token in edit.key:
                found |= {at for at, text in enumerate(texts) if text == token} if isinstance(token, str) else {token}
    return tuple(sorted(at for at in found if 0 <= at < len(texts)))


def hides(edit: Edit) -> bool:
    """Whether an edit hides tokens from every head, whichever token asks."""
    return isinstance(edit, Forbid) and bool(edit.key) and edit == Forbid(key=edit.key)
