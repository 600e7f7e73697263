"""The files of JavaScript and CSS that drawings are made of: read as they are, without a build."""

from pathlib import Path

BASE = ("colours.js", "part_fetcher.js", "common.js")
"""What every drawing begins with."""

OF_AN_ATLAS = ("touch.js", "paint.js", "heatmap.js", "tiles.js", "large.js", "names.js", "card.js", "atlas.js")
"""What an atlas needs beside that."""

OF_STRIPS = ("chips.js", "strips.js")
"""What token strips need beside that."""


def read(*names: str) -> str:
    """Files of this folder, one after the other, as one text."""
    return "\n".join((Path(__file__).parent / "frontend" / name).read_text(encoding="utf-8") for name in names)
