"""Panels as a lecture draws them: the bytes of a drawing as they are, everything else as the header of a scene for tables.js."""

import math
from typing import Any

from viz.canvas.wire.transport import pack
from viz.features.lectures.presenter import markdown
from viz.features.print.options import Options
from viz.features.print.plotly_chart import chart
from viz.features.print.svg import svg
from viz.panels import Aligned, Arrows, Bars, Chart, Content, Curves, Markup, Plot, Scene, Table, Text

MOST_ROWS = 200
"""Most rows of a table."""

MOST_COLUMNS = 64
"""Most columns of a table."""


def scene_of(content: Content) -> tuple[str, bytes]:
    """The kind of what draws a content, and its scene."""
    match content:
        case Scene(kind, data):
            return kind, data
        case Table() as table:
            return "Table", pack(table_header(table), {})
        case Bars(names, values, chosen):
            return "Bars", pack({"texts": list(names), "values": [float(value) for value in values], "chosen": chosen}, {})
        case Text() as text:
            return "Text", pack({"html": markdown.html(text.markdown), "markdown": text.markdown}, {})
        case Aligned() as aligned:
            return "Text", pack({"html": aligned.html}, {})
        case Markup(instead=instead) | Plot(instead=Table() | Bars() as instead):
            return scene_of(instead)
        case Chart() as lines:
            return "Chart", pack(_chart(lines), {})
        case Curves() as curves:
            return "Curves", pack(_curves(curves), {})
        case Arrows(names) as arrows:
            before, after = arrows.unit
            return "Arrows", pack({"names": list(names), "before": before.tolist(), "after": after.tolist()}, {})
        case Plot() as plot:
            return "Plot", pack(_plot(plot), {})


def table_header(table: Table) -> dict[str, Any]:
    """Titles of columns, texts of rows, the row to emphasize, and a shade from 0 to 1 for each number."""
    shades = [] if table.shades is None else table.shades[:MOST_ROWS].tolist()
    rows = [row[:MOST_COLUMNS] for row in table.rows[:MOST_ROWS]]
    titles = table.columns if any(table.columns) else []
    return {"columns": titles[:MOST_COLUMNS], "rows": rows, "chosen": table.chosen, "shades": shades}


def _chart(chart: Chart) -> dict[str, Any]:
    lines = [{"name": line.name, "values": [float(value) for value in line.values], "look": line.look} for line in chart.lines]
    places = {"mark": list(chart.mark) if chart.mark else None, "level": chart.level}
    header = {"across": [float(place) for place in chart.across], "lines": lines, "axes": list(chart.axes)}
    return header | places | {"logarithmic": list(chart.logarithmic)}


def _curves(curves: Curves) -> dict[str, Any]:
    lines = [[float(value) if math.isfinite(value) else None for value in line] for line in curves.lines]
    return {"steps": list(curves.steps), "lines": lines, "names": list(curves.names), "chosen": curves.chosen}


PLOT_MM = 150.0
"""Width of a figure in millimeters: its letters are then as large as those of other drawings."""


def _plot(plot: Plot) -> dict[str, Any]:
    """The figure as print draws it, in both schemes."""
    sheets = {
        name: svg(chart(plot.draw(name == "dark"), Options(width=PLOT_MM, font_size=8, title=False, colours=name), "", plot.alt))
        for name in ("light", "dark")
    }
    return {name: sheet.decode() for name, sheet in sheets.items()} | {"alt": plot.alt}
