"""The moving picture of a run: one token's vector from its embedding through every stage to the prediction, in the run's numbers.

Its part `motion` has a blob for each stage, named by its place in the walk: [1, n] for the vector of the token, [key, n] for keys
and values, [key] for scores, mask and weights, [head, n] for the contexts of all heads, [candidate] for logits and probabilities.
`PLACE+` is what was added at a stage: the positional encoding. `STACK` is the input of a stack, and `STACK.PASS.LAYER` what left a
layer, where the stream has no stages of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from model.trace import stages
from model.trace.stages import OUTPUT, Stage
from model.trace.types import Array, Attention, Trace
from viz.canvas.wire import parts
from viz.canvas.wire.transport import PART_CACHE, Blob, pack
from viz.i18n.translate import _, number
from viz.labels import tokens

MOST_KEYS = 14
"""Most keys of a row that the picture shows: those with the largest weights; the others are counted."""

MOST_TOKENS = 14
"""Most tokens of a text beside the one that is followed."""

LISTED = 8
"""Tokens of the vocabulary that the picture lists for the prediction."""

_STREAM = ("features", "embedding", "scaled", "positioned", "residual", "normed", "final")


@dataclass(frozen=True)
class Followed:
    """Whom the picture follows.

    Attributes:
        rows: by stack, the row of its token, counted from 0.
        head: the head whose queries meet the keys, counted from 0; the first one where a site has fewer.
        candidates: tokens of the vocabulary that are listed for the prediction: id and text, the likeliest first.
        shares: their probabilities, as the step that chose among them had them; empty: there was no such step.
        taken: the place of the chosen token among the candidates; -1: it is not among them.
        captions: for each stage of the walk, a title and a sentence.
    """

    rows: Mapping[str, int]
    head: int
    candidates: tuple[tuple[int, str], ...]
    shares: tuple[float, ...]
    taken: int
    captions: tuple[tuple[str, str], ...]


def can_follow(trace: Trace) -> bool:
    """Whether each row of a stack stays one token: behind memory attention, a decoder's rows are positions of the source."""
    return all(site.kind != "memory" for site in trace.attention)


def rows(trace: Trace, stack: str, query: int) -> dict[str, int]:
    """The row of each stack that the picture follows: of this one the selected row, if it has one.

    Otherwise the encoder's first token that stands for text, and in a decoder the row that generated the first token.
    """
    rows = {}
    for name in dict.fromkeys(site.stack for site in trace.attention):
        count, special = len(labels(trace, name)), trace.tokens[_first(trace, name).query_tokens].special
        generated = trace.steps[0].computed[1] - 1 if trace.steps and name != "encoder" else -1
        opens = generated if generated >= 0 else next((at for at in range(count) if not special[at]), 0)
        rows[name] = query if name == stack and 0 <= query < count else min(opens, count - 1)
    return rows


def labels(trace: Trace, stack: str) -> list[str]:
    """The labels of a stack's rows; in a decoder with the token that each row generates."""
    return tokens.queries(trace, _first(trace, stack))


def _first(trace: Trace, stack: str) -> Attention:
    return next(attention for site, attention in trace.attention.items() if site.stack == stack)


def stack_of(trace: Trace, stage: Stage) -> str:
    """The stack whose positions a stage has: of the output the last one."""
    return list(trace.attention)[-1].stack if stage.place == "output" else stage.stack


def texts() -> dict[str, str]:
    """Texts of the picture, in addition to those of the map of the network."""
    return {
        "moves": _("One token on its way from its embedding to the prediction. Click a shape to see its formula and its code."),
        "token": _("Token"),
        "head": _("Head"),
        "film": _("Export as a video"),
        "filming": _("Stop and save the video"),
        "noFilm": _("This browser cannot record a video."),
        "dimension": _("dimension"),
        "value": _("value"),
        "key": _("key"),
        "stream": _("Residual stream"),
        "positions": _("Positions"),
        "absent": _("not recorded"),
    }


def header(trace: Trace, walk: tuple[Stage, ...], follow: Followed) -> dict[str, Any]:
    """Header fields of the picture: its groups of stages, whose stages it draws at once, and what stands in them."""
    return {
        "groups": list(_groups(trace, walk, follow)),
        "rows": {stack: {"labels": labels(trace, stack), "row": row} for stack, row in follow.rows.items()},
        "head": follow.head,
        "heads": max(attention.heads for attention in trace.attention.values()),
        "candidates": [text for _id, text in follow.candidates],
        "taken": follow.taken,
        "captions": follow.captions,
    }


def part(trace: Trace, walk: tuple[Stage, ...], follow: Followed) -> Blob:
    """The numbers of the picture."""
    rows = "/".join(f"{stack}={row}" for stack, row in follow.rows.items())
    key = f"{parts.run_key(trace)}/motion/{follow.head}/{rows}/{follow.candidates}/{follow.shares}"
    return PART_CACHE.get_or_make(key, lambda: Blob(pack({}, dict(_blobs(trace, walk, follow)))))


def _blobs(trace: Trace, walk: tuple[Stage, ...], follow: Followed) -> Iterator[tuple[str, Array]]:
    for stack, row in follow.rows.items():
        if (embedded := trace.embedded.get(stack)) is not None:
            yield stack, embedded[row][None].astype(np.float32)
    for layer in dict.fromkeys(group["into"] for group in _groups(trace, walk, follow) if group["into"] in trace.hidden):
        yield layer, trace.hidden[layer][follow.rows[layer.partition(".")[0]]][None].astype(np.float32)
    for at, stage in enumerate(walk):
        row = follow.rows[stack_of(trace, stage)]
        if stage.name == "positioned" and (added := trace.positions.get(stage.stack)) is not None:
            yield f"{at}+", added[row][None].astype(np.float32)
        if (numbers := _numbers(trace, stage, row, follow)) is not None:
            yield str(at), numbers.astype(np.float32)


def _numbers(trace: Trace, stage: Stage, row: int, follow: Followed) -> Array | None:
    """What a stage computed for the token; None where the run did not record it."""
    ids = [id_ for id_, _text in follow.candidates]
    if stage.name in OUTPUT:
        if trace.logits is None or not ids or stage.name == "chosen" or max(ids) >= trace.logits.shape[1]:
            return None
        logits = trace.logits[row].astype(np.float64)
        shares = np.exp(logits - logits.max())
        likely = np.array(follow.shares) if follow.shares else (shares / shares.sum())[ids]
        return np.asarray(logits[ids] if stage.name == "logits" else likely)
    if stage.site is None or stage.name not in stages.ATTENTION:
        array = stages.recorded(trace, stage)
        return None if array is None or row >= len(array) else array[row][None]
    attention = trace.at(stage.site)
    head, shown_keys = _head(attention, follow), keys(attention, _head(attention, follow), row)
    match stage.name:
        case "mask":
            return np.where(attention.mask[row], 0.0, -np.inf)[shown_keys]
        case "weights":
            return np.where(attention.mask[row], attention.head(head)[row], 0.0)[shown_keys]
    array = stages.recorded(trace, stage)
    if array is None:
        return None
    index: dict[str, Any] = {
        "queries": np.s_[head, row, None],
        "keys": np.s_[head, shown_keys],
        "values": np.s_[head, shown_keys],
        "scores": np.s_[head, row, shown_keys],
        "context": np.s_[:, row],
        "output": np.s_[row, None],
    }
    part: Array = array[index[stage.name]]
    return part


def _head(attention: Attention, follow: Followed) -> int:
    return follow.head if follow.head < attention.heads else 0


def keys(attention: Attention, head: int, row: int) -> Array:
    """The keys of a row that are shown, in their order: the row's own token and those with the largest weights."""
    weights = np.where(attention.mask[row], np.nan_to_num(attention.head(head)[row]), -1.0)
    if attention.query_tokens == attention.key_tokens and row < len(weights):
        weights[row] = 2.0
    return np.sort(np.argsort(-weights, kind="stable")[:MOST_KEYS])


def _groups(trace: Trace, walk: tuple[Stage, ...], follow: Followed) -> Iterator[dict[str, Any]]:
    """What the picture shows at once: the input of a stack, one sublayer with its residual connection, or the output."""
    stream: dict[str, str] = {stack: stack for stack in follow.rows if stack in trace.embedded}
    ends = {_layer(stage): at for at, stage in enumerate(walk)}
    for (stack, kind, _sublayer), members in groupby(enumerate(walk), key=lambda numbered: _group(trace, numbered[1])):
        inside = list(members)
        group = {"kind": kind, "stack": stack, "stages": [at for at, _stage in inside], "into": stream.get(stack, "")}
        stage, row = inside[0][1], follow.rows[stack]
        if kind == "input":
            group |= _text(trace, stage, row)
        if kind == "attention" and stage.site is not None:
            group |= _row(trace.at(stage.site), trace, row, follow)
        yield group
        at, last = inside[-1]
        layer = _layer(last)
        if last.name in _STREAM:
            stream[stack] = str(at)
        elif kind != "input":  # a library's network: of the stream, at most what leaves a layer was recorded
            stream[stack] = layer if layer in trace.hidden and ends[layer] == at else ""


def _layer(stage: Stage) -> str:
    """The layer of a stage, as `Trace.hidden` names it."""
    return stage.place.rpartition(".")[0]


def _group(trace: Trace, stage: Stage) -> tuple[str, str, str]:
    if stage.place == "output" or stage.name == "final":
        return stack_of(trace, stage), "output", ""
    if "." not in stage.place:
        return stage.stack, "input", ""
    return stage.stack, "attention" if stage.site is not None else "feed_forward", stage.place


def _text(trace: Trace, stage: Stage, row: int) -> dict[str, Any]:
    """The tokens around the one that is followed."""
    strip = trace.tokens[stages.strip(trace, stage)]
    first = max(0, min(row - MOST_TOKENS // 2, len(strip) - MOST_TOKENS))
    columns = range(first, min(first + MOST_TOKENS, len(strip)))
    known = tokens.strip(replace(strip, unknown=(False,) * len(strip)))
    return {"first": first, "tokens": [known[at] for at in columns], "ids": [strip.ids[at] for at in columns] if strip.ids else []}


def _row(attention: Attention, trace: Trace, row: int, follow: Followed) -> dict[str, Any]:
    """The keys that the token meets."""
    head = _head(attention, follow)
    columns, names = keys(attention, head, row), tokens.keys(trace, attention)
    same_strip = attention.query_tokens == attention.key_tokens
    left = np.setdiff1d(np.arange(len(names)), columns)
    weight = number(float(np.where(attention.mask[row], np.nan_to_num(attention.head(head)[row]), 0)[left].sum()), ".4f")
    return {
        "keys": [names[key] for key in columns],
        "places": columns.tolist(),
        "own": int(np.searchsorted(columns, row)) if same_strip and row in columns else -1,
        "others": _("other keys ({count}): {weight}", count=len(left), weight=weight) if len(left) else "",
        "head": head,
        "site": str(attention.site),
    }
