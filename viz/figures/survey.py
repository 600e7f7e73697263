"""Pictures of a survey: the scatter of all heads, and how one head's number is spread over the texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import LEGEND, axis, colour_bar, literal, picture, scale
from viz.figures.theme import scheme
from viz.figures.training import places, steps_axis

SYMBOLS = ("circle", "diamond", "square", "cross")
"""One for each kind of site, so that color is not all that tells them apart."""


def scatter(
    names: Sequence[str],
    groups: Sequence[str],
    across: Array,
    up: Array,
    titles: tuple[str, str],
    roles: Sequence[str],
    selected: int,
    dark: bool,
) -> go.Figure:
    """A dot for each head that has both measures; those with a role are labeled where there is room.

    Args:
        names, groups, roles: of each head: its name, the kind of its site, and its roles or "".
        across, up: [head], the two measures.
        titles: their titles.
        selected: the head with a ring; -1: none.
        dark: which scheme.
    """
    colours = scheme(dark)
    kinds, paints = list(dict.fromkeys(groups)), (colours.second, colours.faint, colours.accent, colours.text)
    told = [literal(role).replace(", ", ",<br>") for role in roles]
    stands = _label_places(across, up, told, selected)
    traces: list[dict[str, Any]] = []
    for number, kind in enumerate(kinds):
        own = [head for head in range(len(names)) if groups[head] == kind and np.isfinite(across[head]) and np.isfinite(up[head])]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": across[own],
                "y": up[own],
                "name": literal(kind),
                "text": [told[head] if head in stands else "" for head in own],
                "textposition": [stands.get(head, "top center") for head in own],
                "textfont": {"size": 12, "color": colours.faint},
                "customdata": [[literal(names[head]), head, f"<br>{literal(roles[head])}" if roles[head] else ""] for head in own],
                "marker": {
                    "size": [15 if head == selected else 10 for head in own],
                    "symbol": SYMBOLS[number % len(SYMBOLS)],
                    "color": paints[number % len(paints)],
                    "line": {"width": [3 if head == selected else 1 for head in own], "color": colours.text},
                },
                "hovertemplate": "%{customdata[0]}: <b>%{x:.3f}</b>, <b>%{y:.3f}</b>%{customdata[2]}<extra></extra>",
            }
        )
    grid = {"showgrid": True, "zeroline": False}
    layout = {
        "xaxis": axis(colours, titles[0]) | grid,
        "yaxis": axis(colours, titles[1]) | grid,
        "showlegend": len(kinds) > 1,
        "legend": LEGEND | {"x": 0, "xanchor": "left"},
    }
    return picture(dark, 430, traces, layout, above=48 if len(kinds) > 1 else 16)


_PLOT, _LETTER, _LINE, _DOT = np.array([250.0, 330.0]), 6.6, 15.6, 8.0
_PLACES = ("top center", "bottom center", "middle right", "middle left", "top right", "top left", "bottom right", "bottom left")


def _label_places(across: Array, up: Array, labels: Sequence[str], first: int) -> dict[int, str]:
    """Where each label stands beside its dot, for those that have room: no label lies over another one, a dot or the edge.

    It is decided for the plot of a phone, in pixels. On a wider screen the dots are further apart and the labels as large, so
    labels that do not meet there meet nowhere.

    Args:
        across, up: [head], the places of the dots.
        labels: of each head, lines separated by <br>; "": none.
        first: the head whose label is placed first; -1: none.
    """
    at = np.stack([across, -up], axis=1)
    drawn = np.isfinite(at).all(axis=1)
    low, high = at[drawn].min(axis=0, initial=np.inf), at[drawn].max(axis=0, initial=-np.inf)
    at = (0.06 + 0.88 * (at - low) / np.where(high > low, high - low, 1)) * _PLOT
    taken = [np.array([dot - _DOT / 2, dot + _DOT / 2]) for dot in at[drawn]]
    found: dict[int, str] = {}
    for head in sorted(np.flatnonzero(drawn).tolist(), key=lambda head: (head != first, -up[head])):
        lines = labels[head].split("<br>")
        size = np.array([_LETTER * max(sum(1 + (ord(one) > 0x2E7F) for one in line) for line in lines), _LINE * len(lines)])
        for place in _PLACES if labels[head] else ():
            towards = np.array([("right" in place) - ("left" in place), ("bottom" in place) - ("top" in place)])
            middle = at[head] + towards * (size / 2 + _DOT)
            box = np.array([middle - size / 2, middle + size / 2])
            inside = (box[0] >= 0).all() and (box[1] <= _PLOT).all()
            if inside and not any((box[0] < other[1]).all() and (other[0] < box[1]).all() for other in taken):
                found[head] = place
                taken.append(box)
                break
    return found


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
        "customdata": [[place * step, (place + 1) * step] for place in range(len(counts))],
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
        "xaxis": axis(colours, title) | {"range": [0, highest]},
        "yaxis": axis(colours, texts) | {"showgrid": True, "rangemode": "tozero"},
        "shapes": [line],
        "bargap": 0,
    }
    return picture(dark, 220, [bars], layout, above=16)


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
    layout = {"xaxis": axis(colours, "") | every, "yaxis": axis(colours, "") | every | {"autorange": "reversed"}}
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
