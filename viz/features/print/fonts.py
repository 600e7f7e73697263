"""Fonts of figures: which font draws a character, and how wide a text becomes.

Our own font, DejaVu Sans Condensed, has Latin, Greek, Cyrillic, Arabic and Hebrew letters, arrows and signs. Other characters
(Chinese, Japanese, Korean, Thai, ...) are drawn with a font of the computer that makes the figure. PDF files embed what they use.
"""

import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from viz.features.print.shapes import MM

FOLDER = Path(__file__).parent / "fonts"
BUNDLED = "DejaVu Sans"
"""Family of our own font; its width is "semi-condensed"."""

_FALLBACKS = "'DejaVu Sans Condensed', 'DejaVu Sans', 'Noto Sans', Arial, sans-serif"
_OTHERS = "'Noto Sans SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"

PREFERRED = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Noto Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "Hiragino Sans GB",
    "SimHei",
    "WenQuanYi Micro Hei",
    "Noto Sans CJK TC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Noto Sans",
    "Segoe UI",
    "Arial Unicode MS",
)
"""Families to try first for a character that our own font does not have."""


@dataclass(frozen=True)
class Run:
    """A part of a text that one family draws; no family: no font here has its characters."""

    family: str | None
    text: str


def runs(text: str) -> list[Run]:
    """The parts of a text by family; marks, joiners and blanks stay with the part before them."""
    runs: list[Run] = []
    for character in text:
        sticks = unicodedata.category(character) in ("Mn", "Me", "Cf", "Zs") and runs
        family = runs[-1].family if sticks else _family(character)
        if runs and runs[-1].family == family:
            runs[-1] = Run(family, runs[-1].text + character)
        else:
            runs.append(Run(family, character))
    return runs


def missing(text: str) -> str:
    """The characters of a text that no font here has."""
    return "".join(dict.fromkeys(c for run in runs(text) if run.family is None for c in run.text if not c.isspace()))


@lru_cache(maxsize=20_000)
def width(text: str, size: float) -> float:
    """Width of a text in millimeters at `size` points, after shaping: Arabic letters join."""
    return sum(_advance(run) for run in runs(text)) * size * MM


def css(family: str | None) -> str:
    """The families of a part for an SVG file: a reader's computer may have another font than ours."""
    if family in (None, BUNDLED):
        return _FALLBACKS
    return f"'{family}', {_OTHERS}"


def _advance(run: Run) -> float:
    """Width of a part, in font sizes."""
    import uharfbuzz as hb

    face = _faces().font(run.family or BUNDLED)
    buffer = hb.Buffer()
    buffer.add_str(run.text)
    buffer.guess_segment_properties()
    with _LOCK:
        hb.shape(face, buffer)
    total: int = sum(position.x_advance for position in buffer.glyph_positions)
    return total / float(face.face.upem)


@lru_cache(maxsize=20_000)
def _family(character: str) -> str | None:
    if unicodedata.category(character) == "Cf":
        return BUNDLED
    return next((family for family in _faces().families() if _faces().has(family, character)), None)


_LOCK = threading.Lock()


class _Faces:
    """The fonts of this computer by family, opened when they are first asked for."""

    def __init__(self) -> None:
        import typst

        self.library = typst.Fonts(include_system_fonts=True, include_embedded_fonts=False, font_paths=[str(FOLDER)])
        plain = [font for font in self.library.fonts() if font.path and font.weight == 400 and font.style == "normal"]
        self.places = {font.family: (font.path, font.index) for font in plain if not _unfit(font.family)}
        self.places[BUNDLED] = (str(FOLDER / "DejaVuSansCondensed.ttf"), 0)
        self.opened: dict[str, Any] = {}

    def families(self) -> Iterator[str]:
        """All families, those first that are tried first."""
        yield BUNDLED
        yield from (family for family in PREFERRED if family in self.places)
        yield from (family for family in sorted(self.places) if family != BUNDLED and family not in PREFERRED)

    def font(self, family: str) -> Any:
        """The font of a family, for shaping."""
        import uharfbuzz as hb

        if family not in self.opened:
            path, index = self.places[family]
            self.opened[family] = hb.Font(hb.Face(hb.Blob.from_file_path(path), index))
        return self.opened[family]

    def has(self, family: str, character: str) -> bool:
        """Whether a family has a glyph for a character."""
        return self.font(family).get_nominal_glyph(ord(character)) is not None


def _unfit(family: str) -> bool:
    """Fonts that draw no plain text: colored pictures, fonts of last resort with boxes."""
    return any(word in family for word in ("Emoji", "LastResort", "Last Resort", "Mono", "Serif", "Math"))


@lru_cache(maxsize=1)
def _faces() -> _Faces:
    return _Faces()


def library() -> Any:
    """The fonts as `typst` takes them: ours and the computer's."""
    return _faces().library


@lru_cache(maxsize=1)
def with_formulas() -> Any:
    """The same, and the typeface for formulas that typst brings."""
    import typst

    return typst.Fonts(include_system_fonts=True, include_embedded_fonts=True, font_paths=[str(FOLDER)])
