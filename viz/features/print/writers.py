"""A sheet as a file. PDF and PNG are made from the SVG by typst, so that all three show the same."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from model.errors import BadSetting
from viz.features.print import fonts
from viz.features.print.shapes import Drawing
from viz.features.print.svg import svg

DOTS = 600
"""Pixels per inch of a PNG: twice the 300 that printers ask for."""

_PAGE = b"""
#set document(title: sys.inputs.title)
#set page(width: float(sys.inputs.width) * 1mm, height: float(sys.inputs.height) * 1mm, margin: 0pt, fill: none)
#image(bytes(sys.inputs.svg), format: "svg", width: 100%, height: 100%, alt: sys.inputs.about)
"""


def pdf(sheet: Drawing) -> bytes:
    """The sheet as PDF, with the fonts that it uses. The same sheet always gives the same bytes."""
    return _typeset(sheet, format="pdf", timestamp=0)


def png(sheet: Drawing, dots: float = DOTS) -> bytes:
    """The sheet as PNG, with so many pixels per inch."""
    return _typeset(sheet, format="png", ppi=dots)


def _typeset(sheet: Drawing, **how: Any) -> bytes:
    given = {"title": sheet.title, "about": sheet.description or sheet.title, "svg": svg(sheet).decode()}
    given |= {"width": f"{sheet.width:.3f}", "height": f"{sheet.height:.3f}"}
    made: bytes = _typesetter()(input=_PAGE, font_paths=fonts.library(), sys_inputs=given, **how)
    return made


@lru_cache(maxsize=1)
def _typesetter() -> Callable[..., Any]:
    """Loaded when the first PDF or PNG is made: it takes a tenth of a second."""
    import typst

    return typst.compile


WRITERS: Mapping[str, Callable[[Drawing], bytes]] = {"svg": svg, "pdf": pdf, "png": png}
"""Writers of a sheet, by the ending of the file."""


def written(sheet: Drawing, path: Path) -> bytes:
    """The file whose name ends as `path` does.

    Raises:
        BadSetting: no figure can be written under such a name.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in WRITERS:
        raise BadSetting(name="the name of the figure", found=path.name, allowed=f"one that ends in {', '.join(WRITERS)}")
    return WRITERS[ending](sheet)
