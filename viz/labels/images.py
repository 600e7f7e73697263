"""Words for the image that a run read, and which of its patches an edit hides."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from model.requests.edits import Edit, Forbid, Token
from model.trace.types import Tokens, Trace, image_facts
from viz.i18n.translate import _


def name_of(trace: Trace) -> str:
    """The name of the image: that of its file; else what the request calls it."""
    sent = image_facts(trace)
    if sent is None:
        return str(trace.request.get("source") or "")
    return sent.name or _("A drawn scene")


def hiding(positions: tuple[Token, ...], decodes: bool) -> tuple[Forbid, ...]:
    """The edits that hide positions of an image from every head.

    Args:
        decodes: whether a decoder attends to the image: a position is a word in its self-attention.
    """
    if decodes:
        return Forbid(stack="encoder", key=positions), Forbid(kind="cross", key=positions)
    return (Forbid(key=positions),)


def hidden_positions(edits: Iterable[Edit], strips: Mapping[str, Tokens]) -> tuple[int, ...]:
    """The positions that edits hide from every head of a network that reads an image, counted from 0.

    Args:
        edits: those of its run.
        strips: its tokens.
    """
    texts, forbidden = strips["source"].texts, [edit for edit in edits if isinstance(edit, Forbid)]

    def places(token: Token) -> set[int]:
        return {at for at, text in enumerate(texts) if text == token} if isinstance(token, str) else {token}

    by_part = [
        {
            at
            for edit in forbidden
            if hides(edit, strips) and replace(edit, key=()) == part
            for token in edit.key
            for at in places(token)
        }
        for part in hiding((), "target" in strips)
    ]
    return tuple(sorted(at for at in set.intersection(*by_part) if 0 <= at < len(texts)))


def hides(edit: Edit, strips: Mapping[str, Tokens]) -> bool:
    """Whether an edit is one of those that hide positions of an image from every head."""
    return isinstance(edit, Forbid) and bool(edit.key) and edit in hiding(edit.key, "target" in strips)
