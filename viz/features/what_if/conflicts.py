"""Contradictions: edits of which one forbids edges that another one opens."""

from collections.abc import Sequence

from model.requests.edits import Allow, Forbid, Token
from model.trace.types import Trace
from viz.features.what_if.edit_list import EditList


def overruled(edits: EditList, trace: Trace) -> dict[int, int]:
    """For each place of the list whose edit a later one overrules at some edge, the place of the first such edit."""
    active = [
        (index, edit) for index, edit in enumerate(edits.edits) if index not in edits.off and isinstance(edit, Forbid | Allow)
    ]
    conflicts: dict[int, int] = {}
    for number, (later, edit) in enumerate(active):
        for earlier, other in active[:number]:
            if earlier not in conflicts and type(edit) is not type(other) and _meet(edit, other, trace):
                conflicts[earlier] = later
    return conflicts


def _meet(edit_a: Forbid | Allow, edit_b: Forbid | Allow, trace: Trace) -> bool:
    """Whether two edits name a common edge of a run."""
    for site, attention in trace.attention.items():
        queries, keys = (trace.tokens[name].texts for name in (attention.query_tokens, attention.key_tokens))
        heads = [set(edit.head) or set(range(attention.heads)) for edit in (edit_a, edit_b)]
        rows = [_places(edit.query, queries) for edit in (edit_a, edit_b)]
        columns = [_places(edit.key, keys) for edit in (edit_a, edit_b)]
        both_here = edit_a.at_site(str(site)) and edit_b.at_site(str(site))
        if both_here and all(first & second for first, second in (heads, rows, columns)):
            return True
    return False


def _places(tokens: Sequence[Token], texts: Sequence[str]) -> set[int]:
    """The places that tokens name; all where none is named."""
    every = range(len(texts))
    if not tokens:
        return set(every)
    return {index for index in every if any(token in (index, texts[index], texts[index].strip()) for token in tokens)}
