"""A picture: the drawings of one view with everything they need, as bytes that a page of ours draws without asking a server.

The bytes are a scene (viz/canvas/wire/transport.py). Its header lists the panels in order; its blobs are the scenes of the panels
and their parts under the paths at which the app serves them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from model.trace.types import Array
from viz.canvas.wire import transport
from viz.canvas.wire.transport import PART_CACHE, WHOLE, pack, unpack

NO_CHANGE = 128
"""Code of a change of 0 in an atlas of changes."""


@dataclass(frozen=True)
class PicturePanel:
    """One drawing of a picture.

    Attributes:
        kind: a key of `viz.canvas.assets.KINDS`, or of `TABLES` (tables.js).
        scene: name of its scene among the blobs.
        heading, note: texts above it; may be empty.
        width, fills: as of `viz.panels.Panel`.
        follows: whether the drawing shows what is selected in the others.
    """

    kind: str
    scene: str = ""
    heading: str = ""
    note: str = ""
    width: str = "whole"
    fills: bool = False
    follows: bool = False


@dataclass(frozen=True)
class Picture:
    """The drawings of a view.

    Attributes:
        panels: in their order.
        scenes: by name.
        pieces: parts by path.
        choice: what is selected at first: fields of `viz.url.view_state.ViewState`.
    """

    panels: Sequence[PicturePanel]
    scenes: Mapping[str, bytes]
    pieces: Mapping[str, bytes]
    choice: Mapping[str, Any]

    def packed(self) -> bytes:
        """The bytes of the picture."""
        pieces = dict(self.pieces)
        for panel in self.panels:
            pieces |= carried(self.scenes[panel.scene], panel.follows)
        header = {
            "panels": [asdict(panel) for panel in self.panels],
            "choice": dict(self.choice),
            "partsAddress": transport.address(),
        }
        return pack(header, {name: np.frombuffer(data, np.uint8) for name, data in ({**self.scenes, **pieces}).items()})


def is_empty(picture: Picture) -> bool:
    """Whether a picture shows nothing: no panel has a token, a row or a number, or the changes of weights are all zero."""
    return all(_shows_nothing(picture, panel) for panel in picture.panels) or any(
        _changes_nothing(picture, panel) for panel in picture.panels if panel.kind == "Atlas"
    )


def _shows_nothing(picture: Picture, panel: PicturePanel) -> bool:
    header, blobs = unpack(picture.scenes[panel.scene])
    if panel.kind == "Strips":
        return not any(strip["tokens"] for strip in header["strips"])
    if panel.kind in ("Table", "Bars", "Text"):
        return not any(header[name] for name in ("rows", "values", "html") if name in header)
    if panel.kind == "Plot":
        return not header["light"]
    return panel.kind == "Cells" and not (blobs["there"].size and blobs["there"].any())


def _changes_nothing(picture: Picture, panel: PicturePanel) -> bool:
    """Whether an atlas of signed changes has none."""
    overview, blobs = overview_of(picture, panel.scene)
    weights = [codes for name, codes in blobs.items() if name.startswith("weights/")]
    return "signed" in overview and all((codes == NO_CHANGE).all() for codes in weights)


def overview_of(picture: Picture, scene: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and blobs of the overview of an atlas or a film, whose small parts travel in the scene."""
    header, blobs = unpack(picture.scenes[scene])
    if "overview" in blobs:
        return unpack(blobs["overview"].tobytes())
    pieces = {**picture.pieces, **carried(picture.scenes[scene])}
    return unpack(pieces[f"{header['parts']['overview']['name']}/{WHOLE}"])


def carried(scene: bytes, follows: bool = False) -> dict[str, bytes]:
    """The parts of a scene that the app would serve, by path; those that are blobs of the scene need not be carried.

    Args:
        follows: whether the drawing shows what is selected in others: with another selection, only its header is kept (picture.js).
    """
    header, blobs = unpack(scene)
    pieces: dict[str, bytes] = {}
    for name, entry in header.get("parts", {}).items():
        is_held = name in blobs
        data = PART_CACHE.piece(entry["name"], WHOLE) if not is_held else blobs[name].tobytes() if follows else None
        if data is not None:
            pieces[f"{entry['name']}/{WHOLE}"] = data
    return pieces
