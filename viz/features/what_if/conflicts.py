"""Contradictions: edits of which one forbids edges that another one opens."""

from collections.abc import Sequence

from model.requests.edits import Allow, Forbid, Token
from model.trace.types import Trace
from viz.features.what_if.edit_list import EditList


def overruled(edits: EditList, trace: Trace) -> dict[int, int]:
    """For each place of the list whose edit a later one overrules at some edge, the place of the first such edit."""
    active = [
        (place, edit) for place, edit in enumerate(edits.edits) if place not in edits.off and isinstance(edit, Forbid | Allow)
    ]
    found: dict[int, int] = {}
    for number, (later, edit) in enumerate(active):
        for earlier, other in active[:number]:
            if earlier not in found and type(edit) is not type(other) and _meet(edit, other, trace):
                found[earlier] = later
    return found


def _meet(one: Forbid | Allow, other: Forbid | Allow, trace: Trace) -> bool:
    """Whether two edits name a common edge of a run."""
    for site, attention in trace.attention.items():
        queries, keys = (trace.tokens[name].texts for name in (attention.query_tokens, attention.key_tokens))
        heads = [set(each.head) or set(range(attention.heads)) for each in (one, other)]
        rows = [_places(each.query, queries) for each in (one, other)]
        columns = [_places(each.key, keys) for each in (one, other)]
        both_here = one.at_site(str(site)) and other.at_site(str(site))
        if both_here and all(first & second for first, second in (heads, rows, columns)):
            return True
    return False


def _places(tokens: Sequence[Token], texts: Sequence[str]) -> set[int]:
    """The places that tokens name; all where none is named."""
    every = range(len(texts))
    if not tokens:
        return set(every)
    return {place for place in every if any(token in (place, texts[place], texts[place].strip()) for token in tokens)}
