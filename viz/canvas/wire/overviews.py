"""Part `overview`: all heads of all sites, pooled to the size of tiles, with the readings that heads are sorted and found by."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isqrt
from typing import Any

import numpy as np

from model.measures.maps import map_of
from model.measures.of_run import of_weights
from model.sharing.caches import once_for_each
from model.trace.types import Array, Attention, Site, Trace
from viz.canvas.wire import parts, strings
from viz.canvas.wire.parts import CELL_BYTES, WHOLE_CELLS, allowed, pool
from viz.canvas.wire.transport import PART_CACHE, Blob, encode, pack
from viz.i18n.translate import _, join_sentences, translated
from viz.labels import alt_text, measures, tokens
from viz.metrics import heads as head_measures
from viz.metrics.aggregation import without_first

OPENING, FINEST, COARSEST = 2_800_000, 128, 16
"""Most bytes of an overview together with its selected head; most and least cells along a side of a head in it. So 12 × 12 × 128 is
not pooled, and 12 × 12 × 512 has two cells per pixel of a tile on a screen of 1440 × 900."""

TOGETHER = 2**16
"""Most weights of a site that is read together with others of the same mask: calls of numpy cost more than so few numbers."""


@dataclass(frozen=True, eq=False)
class Overview(Blob):
    """The part, with what was measured for it.

    Attributes:
        shares: [head], the share of the first token, of all heads of the run in the order of the groups.
    """

    shares: Array


def part(trace: Trace, rest: bool = False) -> Overview:
    """All heads of all sites, grouped by kind and axes, and pooled to the size of tiles.

    Blobs: `weights/SITE` uint8 [head, query, key], `mask/N` uint8 [query, key] (sites with equal masks share one); `readings`
    float32 [measure, head] and `kinds` uint8 [head] as in `viz.metrics.heads`, of all heads in the order of the groups. Each entry
    of weights is the largest of a block of `group["blocks"]` cells. A site whose heads share their keys names how many do
    (`shared`).

    Args:
        rest: whether it is the reading without the first token, whose column is masked. Where cells are not pooled, the masked
            column holds the weights that were left out.
    """
    key = parts.run_key(trace) + ("/rest" if rest else "")
    return PART_CACHE.get_or_make(key, lambda: _made(trace, rest))


@once_for_each
def opens_without_first(trace: Trace) -> bool:
    """Whether most heads have most of their weight on the first token, so that pages open without it."""
    return head_measures.heads_at_first(part(trace).shares) > 0.5


def leaves_out(hide: str, trace: Trace) -> str:
    """What a view leaves out, one of the values of the parameter `hide`: where the link does not say it, the run decides."""
    return hide or ("first" if opens_without_first(trace) else "none")


def finder() -> dict[str, Any]:
    """Texts of what finds heads among many: what sorts them, their kinds."""
    return {
        "sort": _("Order of the heads"),
        "asBuilt": _("by layer"),
        "orders": [
            {
                "name": name,
                "title": translated(title),
                "down": down,
                "what": measures.titles()[name],
                "place": head_measures.READINGS.index(name),
            }
            for name, (title, down) in head_measures.ORDERS.items()
        ],
        "kind": _("Where most of the weight is"),
        "kinds": [*map(translated, head_measures.TITLES)],
        "all": _("all heads"),
        "search": _("Find heads by layer, number or kind"),
        "hint": _("L3 H5, previous token"),
        "least": _("How many of the heads are omitted, from the end"),
        "more": _("Show more"),
    }


def about_first(trace: Trace, rest: bool) -> dict[str, Any]:
    """Header field of an atlas that can leave out the first token: what it shows, and the button that shows the other reading.

    Args:
        rest: whether the drawing leaves it out.
    """
    fields = alt_text.first_token(trace, part(trace).shares)
    if rest:
        return {
            "left": True,
            "said": _(
                "Shown without the first token, “{token}”: {share} of the weight of other rows that see more than one token goes "
                "to it, and in {heads} of the heads more than half. The rest of each row is rescaled to sum to 1; the frame of "
                "each head shows the share that was left out.",
                **fields,
            ),
            "button": _("Show all weights"),
            "hide": "none",
            **strings.left_out(),
        }
    return {
        "left": False,
        "said": _(
            "{share} of the weight of other rows that see more than one token goes to the first token, “{token}”, and in {heads} "
            "of the heads more than half, so that their maps show little else.",
            **fields,
        ),
        "button": _("Leave out the first token"),
        "hide": "first",
    }


def _made(trace: Trace, rest: bool) -> Overview:
    blobs: dict[str, Array] = {}
    masks: dict[tuple[bytes, tuple[int, ...]], str] = {}
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    measured: dict[tuple[str, ...], list[Array]] = {}
    heads = sum(attention.heads for attention in trace.attention.values())
    heads_of_site = _measured(trace, heads, rest)
    for site, attention in trace.attention.items():
        down, across = blocks(attention.mask, heads)
        blobs[f"weights/{site}"] = heads_of_site[site].codes
        allowed_cells = attention.mask & (np.arange(attention.mask.shape[1]) > 0) if rest else attention.mask
        mask = pool(allowed_cells, down, across, np.logical_or).astype(np.uint8)
        name = masks.setdefault((mask.tobytes(), mask.shape), f"mask/{len(masks)}")
        blobs[name] = mask
        kind = (site.stack, site.kind, attention.query_tokens, attention.key_tokens)
        if kind not in groups:
            title = tokens.kind(site.stack, site.kind)
            groups[kind] = {"title": title, "blocks": (down, across), **parts.axes(trace, attention), "sites": []}
        row: dict[str, Any] = {
            "site": str(site),
            "label": row_label(trace, site),
            "mask": name,
            "names": tokens.head_names(trace, site, range(attention.heads)),
        }
        if (shared := tokens.heads_of_a_key(trace, site)) > 1:
            row["shared"] = shared
        groups[kind]["sites"].append(row)
        measured.setdefault(kind, []).append(heads_of_site[site].readings)
    blobs["readings"] = np.concatenate([readings for of_group in measured.values() for readings in of_group], axis=1).astype(
        np.float32
    )
    blobs["kinds"] = head_measures.kinds(blobs["readings"]).astype(np.uint8)
    sentence = alt_text.overview(trace, {site: measured_heads.peaks for site, measured_heads in heads_of_site.items()})
    if rest:
        sentence = join_sentences((alt_text.left_out(trace, blobs["readings"][0]), sentence))
    data = pack({"groups": list(groups.values()), "ends": ["0", "1"], "description": sentence}, blobs)
    return Overview(data, blobs["readings"][0])


@dataclass(frozen=True, eq=False)
class _Heads:
    """What the overview holds of some heads: `codes` [head, query, key], pooled; the measure `largest` where these are described;
    measures `head_measures.READINGS` [measure, head].
    """

    codes: Array
    peaks: list[float]
    readings: Array

    def split(self, counts: Sequence[int]) -> list["_Heads"]:
        """These heads, so many at a time."""
        ends = [*accumulate(counts)]
        parts = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
        return [_Heads(self.codes[part], self.peaks[part], self.readings[:, part]) for part in parts]


def _measured(trace: Trace, heads: int, rest: bool) -> dict[Site, _Heads]:
    """All heads of a run by site, each read once."""
    alike = defaultdict[Hashable, list[Attention]](list)
    for site, attention in trace.attention.items():
        small = attention.heads * attention.mask.size <= TOGETHER
        strips = attention.query_tokens, attention.key_tokens
        kind = (*strips, site.kind, attention.mask.tobytes(), attention.mask.shape, attention.weights.dtype) if small else site
        alike[kind].append(attention)
    heads_of_site: dict[Site, _Heads] = {}
    for group in alike.values():
        sites = [attention.site for attention in group]
        heads_of_site |= zip(
            sites,
            _read(trace, group, *blocks(group[0].mask, heads), rest).split([attention.heads for attention in group]),
            strict=True,
        )
    return heads_of_site


def _read(trace: Trace, sites: Sequence[Attention], down: int, across: int, rest: bool) -> _Heads:
    """The heads of sites with equal masks: all at once where they are small, else one after the other."""
    mask, site = sites[0].mask, map_of(sites[0], trace)
    small = down == across == 1 and mask.size <= WHOLE_CELLS
    read: Iterable[Array] = (attention.head(head)[None] for attention in sites for head in range(attention.heads))
    if small:
        read = [sites[0].weights[:] if len(sites) == 1 else np.concatenate([attention.weights[:] for attention in sites])]
    pieces: list[_Heads] = []
    for weights in read:
        visible = allowed(weights, mask)
        drawn = without_first(visible).astype(np.float32) if rest else visible
        codes = encode(drawn if down == across == 1 else np.stack([pool(head, down, across) for head in drawn]))
        if rest and down == across == 1:
            codes[..., 0] = encode(visible[..., 0])
        readings = of_weights(visible, site, head_measures.READINGS).T
        peaks = readings[head_measures.READINGS.index("largest")] if not rest else of_weights(drawn, site, ("largest",))[:, 0]
        pieces.append(_Heads(codes, peaks.tolist() if mask.size <= alt_text.LARGE else [], readings))
    return _Heads(
        np.concatenate([piece.codes for piece in pieces]),
        [peak for piece in pieces for peak in piece.peaks],
        np.concatenate([piece.readings for piece in pieces], axis=1),
    )


def blocks(mask: Array, heads: int) -> tuple[int, int]:
    """Queries and keys per block in an overview of so many heads.

    All maps and the selected head share OPENING bytes. With 300 queries, 300 keys and 128 heads, the selected head takes 5 · 300²
    bytes of them, which leaves 18,359 for each map: 135 cells along a side, of which FINEST allows 128. So a block has
    ⌈300 / 128⌉ = 3 queries and 3 keys, and a map 100 × 100 cells.
    """
    selected = CELL_BYTES * mask.size if mask.size <= WHOLE_CELLS else 0
    side = max(COARSEST, min(FINEST, isqrt((OPENING - selected) // max(1, heads))))
    return -(-mask.shape[0] // side), -(-mask.shape[1] // side)


def row_label(trace: Trace, site: Site) -> str:
    """Short name of an atlas row: "L1", or "P2 L1" if the stack runs more than once."""
    passes = 1 + max(s.pass_ for s in trace.attention if s.stack == site.stack)
    fields = {"layer": site.layer + 1, "pass_": site.pass_ + 1}
    return _("P{pass_} L{layer}", **fields) if passes > 1 else _("L{layer}", **fields)
