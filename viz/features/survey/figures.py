"""Pictures of a survey, besides that of all heads (heads.py): how a number is spread, how alike heads are, two surveys, a film."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.features.survey.heads_figure import MARGIN
from viz.figures.layout import BAR_HEIGHT, PLACED, axis, colour_bar, literal, picture, room, scale
from viz.figures.steps_axis import places, steps_axis
from viz.figures.theme import scheme


def histogram(counts: Array, highest: float, title: str, texts: str, mean: float, dark: bool) -> go.Figure:
    """How many texts have which number.

    Args:
        counts: [bin], in equal steps from 0.
        highest: end of the last bin, which also counts what is beyond it.
        title, texts: titles of the axes.
        mean: where a line is drawn.
        dark: which scheme.
    """
    colours, step = scheme(dark), highest / len(counts)
    bars = {
        "type": "bar",
        "x": (np.arange(len(counts)) + 0.5) * step,
        "y": counts,
        "width": step * 0.92,
        "marker": {"color": colours.accent},
        "customdata": [[step_index * step, (step_index + 1) * step] for step_index in range(len(counts))],
        "hovertemplate": "%{customdata[0]:.2f}–%{customdata[1]:.2f}: <b>%{y}</b><extra></extra>",
    }
    line = {
        "type": "line",
        "x0": mean,
        "x1": mean,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": colours.text, "dash": "dot"},
    }
    layout = {
        "xaxis": axis(colours, title) | {"range": [0, highest]} | PLACED,
        "yaxis": axis(colours, texts) | {"showgrid": True, "rangemode": "tozero"} | PLACED,
        "margin": MARGIN | {"t": 16},
        "shapes": [line],
        "bargap": 0,
    }
    return picture(dark, 220, [bars], layout)


def alike(short: Sequence[str], names: Sequence[str], divergence: Array, quantity: str, dark: bool) -> go.Figure:
    """How far apart each two heads are, in bits: a cell for each pair.

    Args:
        short, names: of the heads, in the order of the axes: for the axes, and for pointing at a cell.
        divergence: [head, head], from 0 to 1.
        quantity: what the numbers are, for the color bar.
        dark: which scheme.
    """
    colours, count = scheme(dark), len(short)
    places = list(range(count))
    cells = {
        "type": "heatmap",
        "x": places,
        "y": places,
        "z": divergence,
        "zmin": 0,
        "zmax": 1,
        "colorscale": scale(colours.weights[::-1]),
        "colorbar": colour_bar(colours, (0, 0.5, 1)) | {"tickformat": ".2g"},
        "customdata": [[f"{literal(one)} · {literal(other)}" for other in names] for one in names],
        "hovertemplate": "%{customdata}: <b>%{z:.3f}</b><extra></extra>",
    }
    every = {"tickvals": places, "ticktext": [literal(text) for text in short], "tickangle": 0} if count <= 40 else {"nticks": 1}
    every |= PLACED
    layout = {"xaxis": axis(colours, "") | every, "yaxis": axis(colours, "") | every | {"autorange": "reversed"}}
    layout |= {"margin": {"l": 14 + room(short), "r": 18, "t": BAR_HEIGHT, "b": 26}}
    return picture(dark, 110 + min(max(14 * count, 130), 430), [cells], layout, bar=quantity)


def two(
    names: Sequence[str],
    heads: Sequence[int],
    first: Array,
    second: Array,
    errors: Array,
    titles: tuple[str, str],
    selected: int,
    dark: bool,
) -> go.Figure:
    """A dot for each head by one measure in two surveys; on the line both have the same mean.

    Args:
        names, heads: of each dot: its name, and what a click on it reports.
        first, second: [dot], the means.
        errors: [dot], standard errors of the differences, drawn upwards and downwards.
        titles: of the axes.
        selected: the head with a ring; -1: none.
        dark: which scheme.
    """
    colours = scheme(dark)
    ends = [float(min(first.min(), second.min())), float(max(first.max(), second.max()))]
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": ends,
        "y": ends,
        "hoverinfo": "skip",
        "line": {"color": colours.faint, "width": 1},
    }
    bars = {
        **line,
        "x": np.repeat(first, 3),
        "y": np.stack([second - errors, second + errors, np.full(len(second), np.nan)], axis=1).ravel(),
    }
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": first,
        "y": second,
        "customdata": [[literal(name), head] for name, head in zip(names, heads, strict=True)],
        "marker": {
            "size": [15 if head == selected else 10 for head in heads],
            "color": colours.accent,
            "line": {"width": [3 if head == selected else 1 for head in heads], "color": colours.text},
        },
        "hovertemplate": "%{customdata[0]}: <b>%{x:.3f}</b> → <b>%{y:.3f}</b><extra></extra>",
    }
    grid = {"showgrid": True, "zeroline": False}
    layout = {"xaxis": axis(colours, titles[0]) | grid, "yaxis": axis(colours, titles[1]) | grid, "showlegend": False}
    return picture(dark, 380, [line, bars, dots], layout, above=16)


def film(steps: Sequence[int], mean: Array, spread: Array, names: Sequence[str], chosen: int, title: str, dark: bool) -> go.Figure:
    """A line for each head over the snapshots of a training; that of the chosen one is bold, between dotted lines of its spread.

    Args:
        steps: of the snapshots.
        mean, spread: [snapshot, head], the mean over texts and its standard deviation.
        names: of the heads.
        chosen: column of the chosen head.
        title: of the measure.
        dark: which scheme.
    """
    colours, at = scheme(dark), places(steps, steps)
    edge = {"type": "scatter", "mode": "lines", "line": {"color": colours.accent, "width": 1, "dash": "dot"}, "hoverinfo": "skip"}
    band = [edge | {"x": at, "y": mean[:, chosen] + sign * spread[:, chosen]} for sign in (-1, 1)]
    order = [column for column in range(len(names)) if column != chosen] + [chosen]
    lines = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": at,
            "y": mean[:, column],
            "customdata": [[step, deviation] for step, deviation in zip(steps, spread[:, column], strict=True)],
            "line": {"color": colours.accent if column == chosen else colours.faint, "width": 3 if column == chosen else 1.2},
            "marker": {"size": 6 if column == chosen else 3.5},
            "hovertemplate": f"{literal(names[column])}, %{{customdata[0]:,}}: <b>%{{y:.3f}}</b> ± %{{customdata[1]:.3f}}"
            + "<extra></extra>",
        }
        for column in order
    ]
    layout = {"xaxis": steps_axis(colours, steps), "yaxis": axis(colours, title) | {"showgrid": True}, "showlegend": False}
    return picture(dark, 340, [*band, *lines], layout, above=16)
