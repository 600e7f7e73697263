"""JavaScript and CSS files of the drawings, concatenated as they are, without a build step."""

from pathlib import Path

BASE = ("colours.js", "part_fetcher.js", "zoom.js", "keyboard.js", "live_scenes.js", "common.js", "words.js")
"""Files at the start of every drawing."""

OF_AN_ATLAS = ("touch.js", "paint.js", "heatmap.js", "tiles.js", "brush.js", "large.js", "names.js", "card.js", "atlas.js")
"""Further files of an atlas."""

OF_STRIPS = ("chips.js", "strips.js")
"""Further files of token strips."""


def read(*names: str) -> str:
    """Concatenates files of the folder `frontend`."""
    return "\n".join((Path(__file__).parent / "frontend" / name).read_text(encoding="utf-8") for name in names)
