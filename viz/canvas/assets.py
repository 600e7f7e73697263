"""JavaScript and CSS files of the drawings, concatenated without a build step; a pixel of a style is one of the drawing."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from viz.feature import DrawingFiles, features

BASE = (
    "colours.js",
    "part_fetcher.js",
    "scale.js",
    "axis.js",
    "keyboard.js",
    "page_link.js",
    "live_scenes.js",
    "dialog_focus.js",
    "common.js",
    "words.js",
)
"""Files at the start of every drawing."""

OF_AN_ATLAS = (
    "touch.js",
    "paint.js",
    "heatmap.js",
    "tiles.js",
    "brush.js",
    "large.js",
    "arrangement.js",
    "finder.js",
    "tile_marks.js",
    "card.js",
    "atlas.js",
)
"""Further files of an atlas."""

OF_STRIPS = ("chips.js", "strips.js")
"""Further files of token strips."""

OF_LINES = ("lines.js",)
"""Further files of lines, beside `touch.js`, which an atlas has, too."""

_HEATMAP = ("touch.js", "paint.js", "heatmap.js")

_MOTION = ("motion_numbers.js", "motion.js", "keys_motion.js", "sublayer_motion.js", "moving_transport.js", "film_recorder.js")

_KINDS: Mapping[str, DrawingFiles] = {
    "Strips": (OF_STRIPS, ("common.css", "chips.css")),
    "Atlas": (OF_AN_ATLAS, ("common.css", "atlas.css")),
    "Lines": (("touch.js", *OF_LINES), ("common.css",)),
    "Overlay": (
        ("touch.js", "paint.js", "tiles.js", "overlay_paint.js", "overlay.js"),
        ("common.css", "chips.css", "overlay.css"),
    ),
    "Player": ((*_HEATMAP, "chips.js", "transport.js", "player.js"), ("common.css", "chips.css", "player.css")),
    "Network": (("touch.js", "paint.js", "transport.js", *_MOTION, "network.js"), ("common.css", "player.css", "network.css")),
    "Tree": (("tree.js",), ("common.css", "tree.css")),
    "Next": (("chips.js", "next.js"), ("common.css", "chips.css", "next.css")),
    "Sound": (("touch.js", "sound.js"), ("common.css", "sound.css")),
    "Cells": ((*_HEATMAP, "cells.js"), ("common.css",)),
}


@cache
def kinds() -> Mapping[str, DrawingFiles]:
    """The kinds of drawings by the name of their class: further JavaScript files, and CSS files."""
    drawings = dict(_KINDS)
    for feature in features():
        drawings |= feature.drawings
    return drawings


def read(*names: str | Path) -> str:
    """Concatenates files of the folder `frontend`, or, where they are named by their whole path, of a feature."""
    return "\n".join((Path(__file__).parent / "frontend" / name).read_text(encoding="utf-8") for name in names)


_PIXELS = re.compile(r"@media[^{]*|(-?[\d.]+px)")
"""A length in pixels, or the condition of a query for the window, whose pixels are those of the window."""


def enlarged(styles: str) -> str:
    """Multiplies each length in pixels by `--headlight-scale`, by which big mode, a lecture and the first picture enlarge drawings.

    CSS `zoom` would enlarge something else in each browser (docs/decisions.md).
    """
    return _PIXELS.sub(lambda match: f"calc({match[1]} * var(--headlight-scale, 1))" if match[1] else match[0], styles)


def component(kind: str) -> dict[str, Any]:
    """CSS and JavaScript of a Streamlit component that mounts one kind of drawing."""
    scripts, styles = kinds()[kind]
    script = f"{read(*BASE, *scripts)}\nexport default (component) => mount(component, {kind});"
    return {"css": enlarged(read(*styles)), "js": script}


def drawings() -> str:
    """JavaScript of a page that mounts any kind: the files of BASE, then `DRAWINGS`, each kind with its class and its CSS.

    Each kind has a scope of its own, because the files of two kinds may use one name for different things.
    """
    entries = ",\n".join(
        f"{kind}: (() => {{\n{read(*scripts)}\nreturn {kind};\n}})()" for kind, (scripts, _styles) in kinds().items()
    )
    styles = json.dumps({kind: enlarged(read(*styles)) for kind, (_scripts, styles) in kinds().items()})
    return f"{read(*BASE)}\nconst DRAWINGS = {{\n{entries}\n}};\nconst STYLES = {styles};"
