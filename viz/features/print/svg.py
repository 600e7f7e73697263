"""A sheet as SVG: shapes stay shapes, text stays text, in millimeters."""

import base64
import io
from html import escape
from itertools import groupby

from model.trace.types import Array
from viz.features.print import fonts
from viz.features.print.shapes import MM, Circle, Drawing, Line, Picture, Polygon, Rect, Shape, Text


def svg(sheet: Drawing) -> bytes:
    """The file. It names fonts and embeds none: text can be edited and searched everywhere."""
    width, height = _number(sheet.width), _number(sheet.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}mm" height="{height}mm" viewBox="0 0 {width} {height}" '
        f'role="img" font-family="{fonts.css(None)}" font-stretch="semi-condensed">'
    )
    title = f"<title>{_literal(sheet.title)}</title>"
    described = title + (f"<desc>{_literal(sheet.description)}</desc>" if sheet.description else "")
    ground = _shape(Rect(0, 0, sheet.width, sheet.height, fill=sheet.background))
    parts = (_group(is_cell, list(shapes)) for is_cell, shapes in groupby(sheet.shapes, _is_cell))
    return "\n".join((head, described, ground, *parts, "</svg>\n")).encode()


def _is_cell(shape: Shape) -> bool:
    return isinstance(shape, Rect) and shape.stroke is None


def _group(are_cells: bool, shapes: list[Shape]) -> str:
    """Shapes one after the other; the edges of cells are not smoothed, or their neighbors would shine through."""
    drawn = "\n".join(map(_shape, shapes))
    return f'<g shape-rendering="crispEdges">\n{drawn}\n</g>' if are_cells and len(shapes) > 1 else drawn


def _number(value: float) -> str:
    """A length with three decimals: a thousandth of a millimeter."""
    return f"{round(value, 3) + 0.0:.3f}".rstrip("0").rstrip(".")


def _literal(text: str) -> str:
    """Text for XML, without the characters that XML does not allow."""
    return escape("".join(c for c in text if c in "\t\n\r" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff"))


def _paint(fill: str | None, stroke: str | None, wide: float, opacity: float = 1.0) -> str:
    parts = [f'fill="{fill or "none"}"']
    parts += [f'stroke="{stroke}" stroke-width="{_number(wide)}"'] if stroke else []
    return " ".join(parts + ([f'opacity="{opacity:.3g}"'] if opacity < 1 else []))


def _shape(shape: Shape) -> str:
    match shape:
        case Rect():
            box = " ".join(f'{name}="{_number(getattr(shape, name))}"' for name in ("x", "y", "width", "height"))
            return f"<rect {box} {_paint(shape.fill, shape.stroke, shape.width_of_stroke)}/>"
        case Circle():
            box = f'cx="{_number(shape.x)}" cy="{_number(shape.y)}" r="{_number(shape.radius)}"'
            return f"<circle {box} {_paint(shape.fill, shape.stroke, shape.width_of_stroke, shape.opacity)}/>"
        case Polygon():
            corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in shape.points)
            return f'<polygon points="{corners}" {_paint(shape.fill, shape.stroke, shape.width_of_stroke, shape.opacity)}/>'
        case Line():
            return _line(shape)
        case Picture():
            return _picture(shape)
        case Text():
            return _text(shape)


def _line(line: Line) -> str:
    (x, y), *rest = line.points
    way = "C" if line.curved else "L"
    path = f"M{_number(x)} {_number(y)}{way}" + " ".join(f"{_number(a)} {_number(b)}" for a, b in rest)
    dash = f' stroke-dasharray="{" ".join(map(_number, line.dash))}"' if line.dash else ""
    opacity = f' stroke-opacity="{line.opacity:.3g}"' if line.opacity < 1 else ""
    return f'<path d="{path}" fill="none" stroke="{line.stroke}" stroke-width="{_number(line.width)}"{dash}{opacity}/>'


def _text(text: Text) -> str:
    """A text; parts that another family draws are named, so that every reader takes the same font for them."""
    at = f'x="{_number(text.x)}" y="{_number(text.y)}"'
    if text.turned:
        at = f'transform="translate({_number(text.x)} {_number(text.y)}) rotate({_number(text.turned)})"'
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    opacity = f' opacity="{text.opacity:.3g}"' if text.opacity < 1 else ""
    parts = [
        _literal(run.text)
        if run.family in (None, fonts.BUNDLED)
        else f'<tspan font-family="{fonts.css(run.family)}" font-stretch="normal">{_literal(run.text)}</tspan>'
        for run in fonts.runs(text.text)
    ]
    size = _number(text.size * MM)
    return f'<text {at} font-size="{size}" fill="{text.fill}"{anchor}{opacity} xml:space="preserve">{"".join(parts)}</text>'


def _picture(picture: Picture) -> str:
    box = " ".join(f'{name}="{_number(getattr(picture, name))}"' for name in ("x", "y", "width", "height"))
    data = base64.b64encode(png(picture.pixels)).decode("ascii")
    rendering = 'preserveAspectRatio="none" image-rendering="optimizeSpeed" style="image-rendering: pixelated"'
    return f'<image {box} {rendering} href="data:image/png;base64,{data}"/>'


def png(pixels: Array) -> bytes:
    """A lossless PNG of uint8 [row, column, channel]."""
    from PIL import Image

    held = io.BytesIO()
    Image.fromarray(pixels).save(held, "png", optimize=True)
    return held.getvalue()
