"""Scene of the cells of one head at one stage: scores, mask or weights, as a heatmap whose cells can be opened."""

import numpy as np

from model.trace import stages
from model.trace.stages import Stage
from model.trace.types import Array, Trace
from viz import descriptions, experiment, labels
from viz.canvas.scenes.attention import followed
from viz.canvas.wire import strings
from viz.canvas.wire.packing import encode, pack
from viz.texts import decimal_sign
from viz.theme import SCHEMES


def scene(trace: Trace, stage: Stage, head: int, query: int, key: int, live: bool = False) -> bytes:
    """Scene of a stage in OF_CELLS. Blobs, all [query, key]: `exact` float32, the recorded numbers; `codes` uint8, their positions
    on the color scale; `there` uint8, whether the cell holds a number (masked weights, scores that were never computed, NaN and
    infinities do not count); `wrong` uint8, whether it should hold one but does not.

    Args:
        query, key: the opened cell, counted from 0; -1: none.
        live: whether the drawing follows what is typed (viz/live).
    """
    attention = trace.at(stage.place)
    exact, there = _numbers(trace, stage, head)
    largest = float(np.abs(exact[there & np.isfinite(exact)]).max(initial=0)) or 1.0
    header = {
        "schemes": SCHEMES,
        "decimal": decimal_sign(),
        "texts": strings.cells(stage.name),
        "axes": strings.axes(labels.query_axis(trace, attention.site), labels.key_axis(trace, attention.site)),
        "queries": labels.queries(trace, attention),
        "keys": labels.keys(trace, attention),
        "queryStrip": attention.query_tokens,
        "keyStrip": attention.key_tokens,
        "name": experiment.head_name(trace, attention.site, head),
        "site": str(attention.site),
        "head": head,
        "scale": stage.name,
        "largest": largest,
        "opened": [query, key],
        **(followed(trace) if live else {}),
        "description": _described(trace, stage, head, np.where(there, exact, np.nan)),
    }
    codes = encode(exact) if stage.name == "weights" else _centred(exact, largest)
    wrong = there & ~np.isfinite(exact)
    blobs = {"exact": exact.astype(np.float32), "codes": codes, "there": there & ~wrong, "wrong": wrong}
    return pack(header, {name: blob.astype(np.uint8) if blob.dtype == bool else blob for name, blob in blobs.items()})


def _described(trace: Trace, stage: Stage, head: int, numbers: Array) -> str:
    attention = trace.at(stage.place)
    if stage.name == "mask":
        return descriptions.mask(trace, attention, attention.mask)
    if stage.name == "weights":
        return descriptions.head(trace, attention, head)
    return descriptions.table(numbers, labels.key_axis(trace, attention.site))


def _numbers(trace: Trace, stage: Stage, head: int) -> tuple[Array, Array]:
    """The recorded numbers of a head at a stage, and which cells hold one."""
    mask = trace.at(stage.place).mask
    if stage.name == "mask":
        return np.where(mask, 0.0, -np.inf), mask
    exact = stages.tensor(trace, stage, head)
    assert exact is not None, "the page draws what was recorded"
    return exact, mask if stage.name == "weights" else mask | ~np.isnan(exact)


def _centred(values: Array, largest: float) -> Array:
    """Positions on a color scale centered at 0, as uint8: 128 is 0."""
    code: Array = np.rint(128 + 127 * np.clip(np.nan_to_num(values, neginf=-largest) / largest, -1, 1)).astype(np.uint8)
    return code
