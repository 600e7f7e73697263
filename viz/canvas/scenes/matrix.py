"""Scenes of the drawing `cells` for what is no stage of a run: any table of numbers, and masks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from model.trace.types import Array
from viz.canvas.wire import strings
from viz.canvas.wire.transport import pack
from viz.figures.positions import Scale
from viz.figures.theme import ALLOWED, SCHEMES
from viz.i18n.translate import _, decimal_sign
from viz.labels.tokens import MaskForm, mask_signs


@dataclass(frozen=True)
class Told:
    """What a drawing of a page says beyond its cells; a lecture says it in words beside it.

    Attributes:
        name: its title.
        description: the picture in words.
        axes: titles of both axes, in one line; empty: they are said elsewhere.
        bar: what the numbers are and the scale of their colors, which a bar shows; None: up to the largest number, without a bar.
        used: rows of the text at hand, after which there is a dashed line; 0: no line.
        square: whether rows and columns are the same positions, so that cells are as wide as high.
        first: whether the page draws the rest once this is painted (`viz.canvas.painted`).
    """

    name: str
    description: str
    axes: str = ""
    bar: tuple[str, Scale] | None = None
    used: int = 0
    square: bool = False
    first: bool = False


def numbers(
    table: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    axes: tuple[str, str],
    scale: Literal["scores", "weights"] = "scores",
    told: Told | None = None,
) -> bytes:
    """Any table of numbers.

    Args:
        table: [row, column]; a cell that is not finite is empty.
        rows, columns: their labels.
        axes: titles of both axes.
        scale: `scores`: numbers of any size and sign; `weights`: numbers from 0 to 1.
        told: what else it says; None: nothing.
    """
    finite = np.isfinite(table)
    known = np.where(finite, table, 0.0)
    title, own = told.bar if told is not None and told.bar is not None else ("", Scale.of(known))
    codes = np.rint(128 + 127 * np.clip(known / own.end, -1, 1)) if scale == "scores" else np.rint(255 * np.clip(known, 0, 1))
    texts = {
        "query": axes[0],
        "key": axes[1],
        "value": _("value"),
        "none": "",
        "cellValue": "{query}, {key}: {value}",
        "mixed": strings.mixed(),
    }
    bar = {"bar": {"title": title, "ends": own.texts}} if title else {}
    return _cells(texts, axes, (rows, columns), (known, codes, finite), scale, told, bar)


def mask(
    allowed: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    texts: Mapping[str, str],
    strips: tuple[str, str] = ("", ""),
    form: MaskForm = "additive",
    told: Told | None = None,
) -> bytes:
    """A mask.

    Args:
        allowed: [query, key], whether the query may attend to the key.
        rows, columns: labels of the tokens.
        texts: as `viz.canvas.wire.strings.cells` gives them.
        strips: of the queries and the keys.
        form: as `additive`, a cell is 0 where its key is allowed, −∞ where not.
        told: what else it says; None: nothing.
    """
    values = np.where(allowed, 0.0, -np.inf)
    signs = {"signs": mask_signs(form), "allowed": ALLOWED}
    return _cells(texts, strips, (rows, columns), (values, np.where(allowed, 128, 1), allowed), "mask", told, signs)


def _cells(
    texts: Mapping[str, str],
    strips: tuple[str, str],
    labels: tuple[Sequence[str], Sequence[str]],
    cells: tuple[Array, Array, Array],
    scale: str,
    told: Told | None,
    more: Mapping[str, Any],
) -> bytes:
    """The scene of cells, none of which opens a calculation.

    Args:
        cells: their numbers, their codes on the color scale, and whether they hold one.
    """
    about = told or Told("", "")
    label = {
        "cellsLabel": _("{head}. Arrow keys move between cells.", head=about.name) if about.name else "",
        "hint": "",
        "hintTouch": "",
    }
    header = {
        "schemes": SCHEMES,
        "decimal": decimal_sign(),
        "texts": {**texts, **label},
        "queries": list(labels[0]),
        "keys": list(labels[1]),
        "queryStrip": strips[0],
        "keyStrip": strips[1],
        "name": about.name,
        "site": "",
        "head": 0,
        "scale": scale,
        "opened": [-1, -1],
        "description": about.description,
        "axes": about.axes,
        "used": about.used,
        "square": about.square,
        "first": about.first,
        **more,
    }
    values, codes, known = cells
    blobs = {name: blob.astype(np.uint8) for name, blob in {"codes": codes, "there": known, "wrong": np.zeros_like(known)}.items()}
    return pack(header, {"exact": values.astype(np.float32), **blobs})
