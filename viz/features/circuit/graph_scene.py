"""Scene of a circuit: every head, layer above layer, and the edges from each head to the later heads that used what it wrote."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from model.trace.types import Site, Trace
from viz.canvas.scenes.attention import base
from viz.canvas.wire.overviews import row_label
from viz.canvas.wire.transport import pack
from viz.features.circuit import graph_library, texts
from viz.i18n.translate import _, _n
from viz.labels import tokens


@dataclass(frozen=True)
class Edge:
    """One edge.

    Attributes:
        side: what of the later head it leads to.
        since, to: the earlier and the later head, as site and number.
        width: from 0 to 1.
        negative: whether the number that it stands for is below 0.
        said: the edge in words.
    """

    side: Literal["query", "key", "value"]
    since: tuple[Site, int]
    to: tuple[Site, int]
    width: float
    negative: bool
    said: str


def scene(trace: Trace, edges: Sequence[Edge], site: Site, head: int) -> bytes:
    """The graph of a run.

    Args:
        edges: those that are drawn.
        site, head: the selected head.
    """
    stacks = list(dict.fromkeys(site_.stack for site_ in trace.attention))
    passes = 1 + max(site_.pass_ for site_ in trace.attention)
    # An encoder's last layer is beside the decoder's first self-attention, which reads nothing of it: all edges lead upwards.
    beside = sum(site_.stack == stacks[0] for site_ in trace.attention) - 1
    rows: dict[str, int] = {stack: 0 if stack == stacks[0] else beside for stack in stacks}
    nodes = list[dict[str, Any]]()
    for site_, attention in trace.attention.items():
        layer = row_label(trace, site_)
        if site_.kind == "cross":
            fields = {"layer": site_.layer + 1, "pass_": site_.pass_ + 1}
            layer = _("cross P{pass_} L{layer}", **fields) if passes > 1 else _("cross L{layer}", **fields)
        nodes += [
            {
                "id": f"{site_}/{one}",
                "site": str(site_),
                "head": one,
                "stack": stacks.index(site_.stack),
                "row": rows[site_.stack],
                "heads": attention.heads,
                "name": tokens.site(site_, one),
                "layer": layer,
            }
            for one in range(attention.heads)
        ]
        rows[site_.stack] += 1
    description = _n(
        "Graph with {count} edge between heads", "Graph with {count} edges between heads", len(edges), count=len(edges)
    )
    header = {
        **base(trace),
        "texts": texts.graph(),
        "library": graph_library.where(graph_library.GRAPHS),
        "nodes": nodes,
        "edges": [
            {
                "side": edge.side,
                "source": f"{edge.since[0]}/{edge.since[1]}",
                "target": f"{edge.to[0]}/{edge.to[1]}",
                "width": edge.width,
                "negative": edge.negative,
                "said": edge.said,
            }
            for edge in edges
        ],
        "selected": f"{site}/{head}",
        "description": description,
    }
    return pack(header, {})
