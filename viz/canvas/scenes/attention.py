"""Scenes of the strips, the atlas, the lines and the step player (viz/canvas/wire/transport.py turns scenes into bytes).

Weights of many heads are sent as uint8, round(255·sqrt(weight)), which keeps small weights distinct from 0. The selected head is
shown with four decimals, so it is sent as float32. Whatever grows with tokens × tokens is a part (viz/canvas/wire/parts.py).
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from model.errors import UnknownHead
from model.sharing.caches import once_for_each
from model.trace import stages
from model.trace.stages import Stage
from model.trace.steps import Step
from model.trace.types import Array, Attention, Site, Trace, chat_of
from viz.canvas.wire import overviews, parts, strings
from viz.canvas.wire.transport import encode, pack
from viz.figures.theme import ALLOWED, SCHEMES
from viz.i18n.translate import _, decimal_sign, titled
from viz.labels import alt_text
from viz.labels import tokens as labels
from viz.metrics.aggregation import without_first

Marks: TypeAlias = Mapping[str, Mapping[str, Sequence[int]]]
"""Cells of each edited head, SITE/HEAD: `cut` and `opened` as query · keys + key, and `rows` whose weights were replaced."""


def strips(trace: Trace, site: Site, query: int, hidden: Mapping[str, Sequence[int]] | None = None, live: bool = False) -> bytes:
    """Token strips, with the selected query row of `site` (-1: none).

    Args:
        hidden: by strip whose tokens a click hides, the positions of those that are hidden; None: a click selects a row.
        live: whether the drawing follows what is typed (viz/features/live).
    """
    attention = trace.at(site)
    described = trace.image is not None and "target" in trace.tokens
    apart = labels.listens(trace) or described  # the image or the sound has a drawing of its own
    header = {
        **base(trace, live),
        "texts": strings.strips(),
        "strips": [strip(trace, name) for name in trace.tokens if name != "source" or not apart],
        "queryStrip": attention.query_tokens,
        "rows": int(attention.weights.shape[1]),
        "query": _row(attention, query),
    }
    if hidden is None:
        header["continues"] = continues(trace)
    else:
        header |= {"hides": {name: list(positions) for name, positions in hidden.items()}}
    return pack(header, {})


def atlas(
    trace: Trace,
    site: Site,
    head: int,
    query: int,
    marks: Marks | None = None,
    live: bool = False,
    writes: bool = False,
    rest: bool = False,
) -> bytes:
    """All heads of all sites, grouped by kind, and the selected head exactly: parts `overview` and `exact`.

    Args:
        rest: whether it is the reading without the first token. Where that token has most of the weight, the drawing says which of
            the two readings it is, and reports a wish for the other as `hide`.
        marks: what edits changed, by head, where the drawing takes edits; None: it takes none.
        live: whether the drawing follows what is typed (viz/features/live).
        writes: whether the run still decodes: a map of a single cell, whose weight is always 1, is left blank then.
    """
    selected = trace.at(site)
    header = {
        **base(trace, live),
        "writes": writes,
        "texts": strings.atlas(),
        "find": overviews.finder(),
        "selection": {"site": str(site), "head": head, "query": _row(selected, query)},
        "announce": _announced(trace, selected, head, query, rest),
    }
    if rest or overviews.opens_without_first(trace):
        header["first"] = overviews.about_first(trace, rest)
    if marks is not None:
        header |= {"texts": strings.editing(), "marks": marks}
    return parts.scene(header, {"overview": overviews.part(trace, rest), "exact": parts.exact(trace, site, head, rest)})


@dataclass(frozen=True, eq=False)
class ReadingScene:
    """A reading to draw instead of a head's weights.

    Attributes:
        name: identifies it among the readings of one head.
        title: its title.
        values: [query, key], none negative; NaN is drawn as 0.
    """

    name: str
    title: str
    values: Array


def lines(trace: Trace, site: Site, head: int, query: int, read: ReadingScene | None = None, live: bool = False) -> bytes:
    """One head between its two token strips: part `exact`.

    Args:
        read: what the lines show instead of the head's weights. Its cells have no calculation to open.
        live: whether the drawing follows what is typed (viz/features/live).
    """
    attention = trace.at(site)
    part = parts.exact(trace, site, head) if read is None else parts.read(trace, site, head, read.name, read.values)
    header = {
        **base(trace, live),
        "texts": strings.lines(),
        **parts.axes(trace, attention),
        "name": labels.head_name(trace, site, head) if read is None else read.title,
        "site": str(site),
        "head": head,
        "query": _row(attention, query),
        "opens": read is None,
        "largest": 1.0 if read is None else float(np.nanmax(read.values, initial=0.0)) or 1.0,
        "description": alt_text.head(trace, attention, head)
        if read is None
        else titled(read.title, alt_text.table(read.values, labels.key_axis(trace, site))),
    }
    return parts.scene(header, {"exact": part})


@dataclass(frozen=True)
class Asks:
    """What a drawing asks the server about a cell that is pointed at (viz/session/cell_route.py).

    Attributes:
        address: where it asks.
        texts: its texts, in place of those of cells that open their calculation.
    """

    address: str
    texts: Mapping[str, str]


def cells(trace: Trace, stage: Stage, head: int, query: int, key: int, live: bool = False, writes: Asks | None = None) -> bytes:
    """Scene of a stage in OF_CELLS. Blobs, all [query, key]: `exact` float32, the recorded numbers; `codes` uint8, their positions
    on the color scale; `there` uint8, whether the cell holds a number (masked weights, scores that were never computed, NaN and
    infinities do not count); `wrong` uint8, whether it should hold one but does not.

    Args:
        query, key: the opened cell, counted from 0; -1: none.
        live: whether the drawing follows what is typed (viz/features/live).
        writes: how a cell says which tokens its value pushes up and down; None: a cell opens its calculation.
    """
    attention = trace.at(stage.place)
    exact, existing, described = _numbers(trace, stage, head)
    largest = float(np.abs(exact[existing & np.isfinite(exact)]).max(initial=0)) or 1.0
    header = {
        "schemes": SCHEMES,
        "decimal": decimal_sign(),
        "texts": strings.cells(stage.name) | (dict(writes.texts) if writes else {}),
        **({"writes": writes.address} if writes else {}),
        "axes": strings.axes(labels.query_axis(trace, attention.site), labels.key_axis(trace, attention.site)),
        "queries": labels.queries(trace, attention),
        "keys": labels.keys(trace, attention),
        "queryStrip": attention.query_tokens,
        "keyStrip": attention.key_tokens,
        "name": labels.head_name(trace, attention.site, head),
        "site": str(attention.site),
        "head": head,
        "scale": stage.name,
        "largest": largest,
        "opened": [query, key],
        **(followed(trace) if live else {}),
        "opens": True,
        "signs": labels.mask_signs("additive"),
        "allowed": ALLOWED,
        "description": described,
    }
    codes = encode(exact) if stage.name == "weights" else _centred(exact, largest)
    wrong = existing & ~np.isfinite(exact)
    blobs = {"exact": exact.astype(np.float32), "codes": codes, "there": existing & ~wrong, "wrong": wrong}
    return pack(header, {name: blob.astype(np.uint8) if blob.dtype == bool else blob for name, blob in blobs.items()})


def _announced(trace: Trace, attention: Attention, head: int, query: int, rest: bool) -> str:
    """What is said after a head was selected, and the row of it that is selected, if any."""
    sentence = ""
    if _row(attention, query) >= 0:
        name, keys = labels.queries(trace, attention, longest=None)[query], labels.keys(trace, attention, longest=None)
        weights = np.where(attention.mask[query], attention.head(head)[query], 0.0)
        sentence = alt_text.row(name, keys, without_first(weights[None])[0] if rest else weights)
    return _("{head} is selected. {row}", head=labels.head_name(trace, attention.site, head), row=sentence).strip()


def _row(attention: Attention, query: int) -> int:
    """`query`, or -1 if the site has no such row."""
    return query if 0 <= query < attention.weights.shape[1] else -1


def base(trace: Trace, live: bool = False) -> dict[str, Any]:
    """Header fields of every drawing: color schemes, an id of the run, its silenced heads, as SITE/HEAD, and the decimal sign; the
    sentence, if the drawing follows what is typed.
    """
    return {"schemes": SCHEMES, **_of_run(trace), "decimal": decimal_sign(), **(followed(trace) if live else {})}


@once_for_each
def _of_run(trace: Trace) -> dict[str, Any]:
    """The id of a run and its silenced heads, which all its drawings name."""
    run = json.dumps(
        [trace.model.get("fingerprint"), dict(trace.request), {n: t.texts for n, t in trace.tokens.items()}], default=str
    )
    return {"run": run, "silenced": sorted(f"{site}/{head}" for site, head in labels.silenced(trace))}


def followed(trace: Trace) -> dict[str, Any]:
    """Header field of a drawing that follows what is typed: the sentence that it shows, as it stood in the box, what else may be
    chosen without a script run, and whether its decode has begun and not yet written a token.
    """
    decoding = trace.request.get("decoding") or {}
    decodes = trace.request.get("target") is None and decoding.get("max_length", 0) > 0
    live = {
        "text": sentence(trace),
        "begun": decodes and not trace.steps and not _has_decoder(trace),
        "seed": decoding.get("seed"),
        "temperature": decoding.get("temperature"),
        "silenced": _of_run(trace)["silenced"],
    }
    return {"live": live}


def sentence(trace: Trace) -> Any:
    """What stood in the sentence box: the source, or the newest turn of a conversation."""
    source = trace.request.get("source")
    return source["turns"][-1]["text"] if isinstance(source, Mapping) and "turns" in source else source


def _has_decoder(trace: Trace) -> bool:
    return not trace.of_program and any(site.stack == "decoder" for site in trace.attention)


def strip(trace: Trace, name: str) -> dict[str, Any]:
    """One strip and its chips. A chip's `row` is its query row; in a decoder, the row that generated it."""
    tokens = trace.tokens[name]
    written = name == labels.written_strip(trace) and _has_decoder(trace)
    steps = {step.computed[1]: step for step in trace.steps} if written else {}
    by_hand = len(labels.by_hand(trace))
    known = labels.strip(replace(tokens, unknown=(False,) * len(tokens)) if any(tokens.unknown) else tokens)
    chat = chat_of(trace) if name == "source" else None
    chips: list[dict[str, Any]] = []
    for i, label in enumerate(known):
        kind = {"special": tokens.special[i], "unknown": tokens.unknown[i]}
        chips.append({"label": label, "text": labels.word(tokens.texts[i]), **kind, "row": i - 1 if written else i})
        if (step := steps.get(i)) is not None:
            probability = math.exp(step.chosen.log_probability)
            chips[i] |= {"step": step.index, "probability": probability, "candidates": _candidates(step)}
            chips[i]["byHand"] = step.index < by_hand
    for first, (count, text) in labels.joined(tokens.texts).items():
        for chip in chips[first : first + count]:
            chip |= {"within": labels.word(text), "part": True}
        chips[first] |= {"label": labels.word(text), "part": False}
    return {
        "name": name,
        **({} if chat is None else {"starts": list(chat.starts)}),
        "title": strings.strip_title(trace, name, bool(steps)),
        "written": written,
        "generated": bool(steps),
        "tokens": chips,
    }


def continues(trace: Trace) -> list[int] | None:
    """The ids that a decode generated, from any of which it can be continued otherwise; None: it generated none."""
    decoded = trace.request.get("target") is None and (trace.request.get("decoding") or {}).get("max_length", 1) > 0
    return [step.chosen.id for step in trace.steps] if decoded and trace.steps else None


def _candidates(step: Step) -> list[dict[str, Any]]:
    """The likeliest tokens, best first, always including the chosen one: sampling may choose an unlikely token."""
    listed = list(step.candidates)
    if all(c.id != step.chosen.id for c in listed):
        listed.append(step.chosen)
    return [
        {"id": c.id, "text": labels.word(c.text), "probability": math.exp(c.log_probability), "chosen": c.id == step.chosen.id}
        for c in listed
    ]


def _numbers(trace: Trace, stage: Stage, head: int) -> tuple[Array, Array, str]:
    """The recorded numbers of a head at a stage, which cells hold one, and the picture in words."""
    attention = trace.at(stage.place)
    mask = attention.mask
    match stage.name:
        case "mask":
            return np.where(mask, 0.0, -np.inf), mask, alt_text.mask(trace, attention, mask)
        case "weights":
            return attention.head(head), mask, alt_text.head(trace, attention, head)
    exact = stages.tensor(trace, stage, head)
    assert exact is not None, "the page draws what was recorded"
    existing = mask | ~np.isnan(exact)
    return exact, existing, alt_text.table(np.where(existing, exact, np.nan), labels.key_axis(trace, attention.site))


def _centred(values: Array, largest: float) -> Array:
    """Positions on a color scale centered at 0, as uint8: 128 is 0."""
    code: Array = np.rint(128 + 127 * np.clip(np.nan_to_num(values, neginf=-largest) / largest, -1, 1)).astype(np.uint8)
    return code


def player(trace: Trace, site: Site, head: int, step: int) -> bytes:
    """The decoding token by token, at one site: part `heads`.

    Raises:
        UnknownSite, UnknownHead: the run has no such place.
    """
    attention = trace.at(site)
    if not 0 <= head < attention.heads:
        raise UnknownHead(asked=head, site=site, last=attention.heads - 1)
    header = {
        **base(trace),
        "texts": strings.player(),
        **parts.axes(trace, attention),
        "site": str(site),
        "names": labels.head_names(trace, site, range(attention.heads)),
        "strips": [strip(trace, name) for name in trace.tokens],
        "written": labels.written_strip(trace),
        "continues": continues(trace),
        "decodes": site.stack == "decoder" and bool(trace.steps),
        "head": head,
        "step": step,
        "description": alt_text.head(trace, attention, head),
    }
    return parts.scene(header, {"heads": parts.heads(trace, site)})
