"""From what a person drew to edits: a brushed rectangle, a silenced head, a hidden token."""

from collections.abc import Sequence

from model.requests.edits import Allow, Edit, Forbid, SetRow, Silence, Token
from model.trace.types import Tokens, Trace
from viz.canvas.edit_events import Gesture
from viz.features.what_if.edit_list import EditList
from viz.labels.images import hidden_positions, hides
from viz.labels.images import hiding as hiding_patches


def drawn(edits: EditList, made: Gesture, strips: dict[str, Tokens], shape: tuple[int, int]) -> EditList:
    """The list of edits after a gesture. A gesture that is made again is taken back.

    Args:
        strips: the tokens of the run.
        shape: queries and keys of the gesture's site.
    """
    if made.act == "hide" and made.positions:
        return _brushed(edits, made.positions, strips)
    if made.act == "hide":
        return _hidden(edits, made, strips)
    if made.act == "silence":
        return _silenced(edits, made)
    return edits.with_or_without(_of_cells(made, shape))


def _of_cells(made: Gesture, shape: tuple[int, int]) -> Edit:
    """The edit of brushed cells; a side that is marked from end to end means all tokens."""
    query, key = _places(made.queries, shape[0]), _places(made.keys, shape[1])
    heads = (made.head,)
    if made.act == "onehot":
        return SetRow(site=made.site, head=heads, query=query, to="one-hot", key=made.keys[0])
    if made.act == "uniform":
        return SetRow(site=made.site, head=heads, query=query)
    return (Forbid if made.act == "forbid" else Allow)(site=made.site, head=heads, query=query, key=key)


def _places(ends: tuple[int, int], count: int) -> tuple[Token, ...]:
    return () if ends == (0, count - 1) else tuple(range(ends[0], ends[1] + 1))


def _silenced(edits: EditList, made: Gesture) -> EditList:
    """One chip for each site: a head is added to it, or taken from it."""
    for index, edit in enumerate(edits.edits):
        if not isinstance(edit, Silence) or edit.site != made.site or edit.by != "zeros" or index in edits.off or not edit.head:
            continue
        heads = sorted({*edit.head} ^ {made.head})
        return edits.changed(index, Silence(site=edit.site, head=tuple(heads))) if heads else edits.without(index)
    return edits.with_(Silence(site=made.site, head=(made.head,)))


def _brushed(edits: EditList, positions: Sequence[int], strips: dict[str, Tokens]) -> EditList:
    """One edit of each stack for all hidden patches of an image: brushed ones come to it, or leave it if it hides them all."""
    there = [index for index, edit in enumerate(edits.edits) if hides(edit, strips) and index not in edits.off]
    before = set(hidden_positions([edits.edits[index] for index in there], strips))
    brushed = {position for position in positions if position < len(strips["source"])}
    now = before - brushed if brushed <= before else before | brushed
    return edits.without(*there).with_(*(hiding_patches(tuple(sorted(now)), "target" in strips) if now else ()))


def _hidden(edits: EditList, made: Gesture, strips: dict[str, Tokens]) -> EditList:
    if made.strip not in strips or made.position >= len(strips[made.strip]):
        return edits
    wanted = hiding(strips, made.strip, made.position)
    there = [place for place, edit in enumerate(edits.edits) if edit in wanted and place not in edits.off]
    return edits.without(*there) if there else edits.with_(*wanted)


def hiding(strips: dict[str, Tokens], strip: str, position: int) -> tuple[Edit, ...]:
    """The edits that hide a token from every head.

    A word that occurs only once is named by its text. Other tokens are called by position, which counts another strip at every
    kind of attention.
    """
    text = strips[strip].texts[position]
    everywhere = [one for each in strips.values() for one in each.texts]
    if everywhere.count(text) == 1 and not strips[strip].special[position] and strip == "source":
        return (Forbid(key=(text,)),)
    if "target" not in strips:
        return (Forbid(key=(position,)),)
    if strip == "target":
        return (Forbid(stack="decoder", kind="self", key=(position,)),)
    return (Forbid(stack="encoder", key=(position,)), Forbid(kind="cross", key=(position,)))


def hidden_tokens(edits: Sequence[Edit], trace: Trace) -> dict[str, list[int]]:
    """By strip, the positions of the tokens that edits hide from every head."""
    strips = dict(trace.tokens)
    found = {
        name: [place for place in range(len(tokens)) if all(edit in edits for edit in hiding(strips, name, place))]
        for name, tokens in strips.items()
    }
    return found if trace.image is None else found | {"source": list(hidden_positions(edits, strips))}


def marks(edits: Sequence[Edit], before: Trace, now: Trace) -> dict[str, dict[str, list[int]]]:
    """Cells that edits closed and opened, and rows that they replaced, by head; as `canvas.scenes.attention.Marks`.

    A cell is closed if its weight became exactly 0 where the mask allows it, and opened if it has a weight where the mask does not.
    """
    cutting = any(isinstance(edit, Forbid) for edit in edits)
    opening = any(isinstance(edit, Allow) for edit in edits)
    found: dict[str, dict[str, list[int]]] = {}
    left = MOST_MARKS
    for site, attention in before.attention.items() if cutting or opening else ():
        there = now.attention.get(site)
        if there is None or there.weights.shape != attention.weights.shape:
            continue
        for head in range(attention.heads):
            one, other = attention.head(head), there.head(head)
            closed = ((one > 0) & (other == 0)).ravel().nonzero()[0] if cutting else ()
            opened = (~attention.mask & (other > 0)).ravel().nonzero()[0] if opening else ()
            left -= len(closed) + len(opened)
            if left < 0:
                return found
            if len(closed) or len(opened):
                found[f"{site}/{head}"] = {"cut": [int(at) for at in closed], "opened": [int(at) for at in opened]}
    return found


MOST_MARKS = 20_000
"""Most marked cells that a drawing gets; heads after that many have none."""
