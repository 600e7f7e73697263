"""Scene of the tree of a beam search: one column per step, kept hypotheses above, pruned ones below."""

from typing import Any

from model.trace.beam_tree import Node, hypotheses, path
from model.trace.types import Trace
from viz.canvas.scenes.attention import base
from viz.canvas.wire import strings
from viz.canvas.wire.transport import pack
from viz.labels import alt_text, tokens

MOST = 1500
"""Most nodes drawn; of a larger tree only nodes that led to a final hypothesis are drawn, up to this many."""


def scene(trace: Trace, shown: int) -> bytes:
    """The tree of a trace.

    Args:
        trace: a run with beam search.
        shown: rank of the hypothesis that the trace describes.
    """
    ends = hypotheses(trace.tree)
    places = drawn(trace.tree)
    rows = layout(trace.tree, places)
    header = {
        **base(trace),
        "texts": strings.tree(),
        "nodes": [_node(trace.tree[node], node, rows[node]) for node in places],
        "columns": 1 + max(trace.tree[node].step for node in places),
        "pruned": 1 + max((rows[p] for p in places if trace.tree[p].fate != "pruned"), default=0),
        "rows": 1 + max(rows.values()),
        "shown": list(path(trace.tree, ends[shown])),
        "description": alt_text.tree(trace.tree),
    }
    return pack(header, {})


def drawn(tree: tuple[Node, ...]) -> list[int]:
    """Indices of the nodes to draw."""
    if len(tree) <= MOST:
        return list(range(len(tree)))
    chosen: set[int] = set()
    for end in hypotheses(tree):
        if not chosen or len(chosen | set(path(tree, end))) <= MOST:
            chosen |= set(path(tree, end))
    return sorted(chosen)


def layout(tree: tuple[Node, ...], places: list[int]) -> dict[int, int]:
    """Row of each drawn node: in each step the likeliest first; pruned nodes start at the same row in all steps."""
    alive = [_by_step(tree, [p for p in places if (tree[p].fate == "pruned") == pruned]) for pruned in (False, True)]
    first = max(map(len, alive[0].values()), default=0)
    return {
        node: below + row
        for below, steps in zip((0, first), alive, strict=True)
        for nodes in steps.values()
        for row, node in enumerate(nodes)
    }


def _by_step(tree: tuple[Node, ...], places: list[int]) -> dict[int, list[int]]:
    steps: dict[int, list[int]] = {}
    for node in sorted(places, key=lambda node: (tree[node].step, -tree[node].total)):
        steps.setdefault(tree[node].step, []).append(node)
    return steps


def _node(node: Node, index: int, row: int) -> dict[str, Any]:
    return {
        "place": index,
        "parent": node.parent,
        "column": node.step,
        "row": row,
        "text": tokens.word(node.text),
        "own": node.log_probability,
        "total": node.total,
        "mean": node.mean,
        "fate": node.fate,
        "rank": node.rank,
    }
