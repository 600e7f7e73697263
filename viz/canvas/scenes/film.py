"""The film: every head of every site at every snapshot of a training, and what each snapshot writes, in one scene."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from model.trace.types import Array, Site, Tokens, Trace
from viz import labels
from viz.canvas.scenes.attention import base
from viz.canvas.wire import parts, strings
from viz.canvas.wire.packing import pack, unpack
from viz.canvas.wire.part_cache import SHELF, Blob, content_hash
from viz.links import MEASURES
from viz.readings.training import Course, Frame, explanations, fed, surprise


def scene(frames: Sequence[Frame], whole: Trace, measured: Course, site: Site, head: int, query: int, at: int) -> bytes:
    """The atlas of every frame. Parts as of the atlas, with an axis more:

    `overview` has `weights/SITE` uint8 [snapshot, head, query, key], `mask/N` uint8 [query, key], `measures` float32 [snapshot,
    measure, head of all sites] and `probability` float32 [snapshot, token], which each snapshot gave to the tokens it was fed;
    `exact` has `exact` float32 [snapshot, query, key] of the selected head, and its `mask`.

    Args:
        frames: in the order of their steps, all fed the same tokens.
        whole: the run whose tokens they were fed.
        measured: of the frames.
        site, head, query: what is selected; query -1: none.
        at: the frame that is shown first.

    Raises:
        UnknownSite, UnknownHead: the runs have no such site or head.
    """
    shown = atlas_of(frames[-1].fed, whole)
    key = "/".join([parts.run_key(whole), *(parts.run_key(frame.fed) for frame in frames)])
    strip, selected = fed(whole), shown.at(site)
    selected.head(head)
    lost = [surprise(frame.fed, strip.ids) for frame in frames]
    header = {
        **base(shown),
        "texts": strings.atlas() | strings.film(),
        "selection": {"site": str(site), "head": head, "query": query if query < selected.weights.shape[1] else -1},
        "film": content_hash(key.encode()),
        "steps": [frame.step for frame in frames],
        "frames": [_frame(frame, losses) for frame, losses in zip(frames, lost, strict=True)],
        "fed": [_chip(strip, i) for i in range(len(strip))],
        "titles": {"fed": strings.fed(whole), "own": strings.own()},
        "measures": [explanations()[name].title for name in MEASURES],
        "column": measured.heads.index((site, head)),
        "frame": at,
    }
    made = {
        "overview": SHELF.keep(f"film/{key}", lambda: Blob(_overview(frames, shown, measured, np.stack(lost)))),
        "exact": SHELF.keep(f"film/{key}/{site}/{head}", lambda: Blob(_exact(frames, site, head))),
    }
    return parts.scene(header, made)


def atlas_of(run: Trace, whole: Trace) -> Trace:
    """A snapshot's run with the tokens of the run that it was fed: its rows are called as they are there, the last one too."""
    return replace(run, tokens=whole.tokens)


def _overview(frames: Sequence[Frame], shown: Trace, measured: Course, lost: Array) -> bytes:
    header, blobs = unpack(parts.overview(shown).data)
    pooled = [unpack(parts.overview(frame.fed).data)[1] for frame in frames]
    stacks = {name: np.stack([one[name] for one in pooled]) for name in blobs if name.startswith("weights/")}
    measures = np.stack([measured.values[name] for name in MEASURES], axis=1)
    return pack(header, blobs | stacks | {"measures": measures.astype(np.float32), "probability": np.exp(-lost).astype(np.float32)})


def _exact(frames: Sequence[Frame], site: Site, head: int) -> bytes:
    exact = np.stack([frame.fed.at(site).head(head) for frame in frames]).astype(np.float32)
    return pack({}, {"exact": exact, "mask": frames[-1].fed.at(site).mask.astype(np.uint8)})


def _frame(frame: Frame, lost: Array) -> dict[str, Any]:
    """What is said of one snapshot. A network that writes nothing has neither a loss nor tokens of its own."""
    chips = _own_chips(frame.own) if frame.own else []
    loss = float(lost.mean()) if np.isfinite(lost).all() and len(lost) else None
    return {
        "name": strings.snapshot(frame.step),
        "loss": loss,
        "perplexity": None if loss is None else math.exp(min(loss, 700.0)),
        "own": chips,
    }


def _own_chips(own: Trace) -> list[dict[str, Any]]:
    """The tokens that a snapshot wrote by itself, each with its probability."""
    strip = fed(own)
    first = len(strip) - len(own.steps)
    return [_chip(strip, first + i) | {"probability": math.exp(step.chosen.log_probability)} for i, step in enumerate(own.steps)]


def _chip(tokens: Tokens, position: int) -> dict[str, Any]:
    known = replace(tokens, unknown=(False,) * len(tokens))
    return {
        "label": labels.token(known, position),
        "text": labels.plain(tokens.texts[position]),
        "special": tokens.special[position],
        "unknown": tokens.unknown[position],
    }
