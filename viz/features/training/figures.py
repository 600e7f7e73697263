"""Curves over a training: losses, and a measure of every head. The axis of steps is logarithmic, with an extra place for step 0."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import BAR_HEIGHT, LEGEND, axis, literal, picture
from viz.figures.steps_axis import places, steps_axis
from viz.figures.theme import Scheme, scheme
from viz.i18n.translate import _


def losses(
    epochs: Sequence[int], training: Array, validation: Array, snapshots: Sequence[int], sentence: Array, at: int, dark: bool
) -> go.Figure:
    """Line chart of the losses of a training by epoch and of the loss on one sentence, with a line at the current snapshot.

    Args:
        epochs: training steps at which the epochs ended.
        training, validation: [epoch], in nats a token.
        snapshots: training steps of the snapshots; they define the axis.
        sentence: [snapshot], the loss on the sentence; NaN: none.
        at: training step of the current snapshot.
        dark: whether the page is dark.
    """
    colours = scheme(dark)
    curves = [
        _curve(snapshots, epochs, training, colours.faint, 1.5, name=_("training"), dash="dot"),
        _curve(snapshots, epochs, validation, colours.second, 1.5, name=_("validation")),
        _curve(snapshots, snapshots, sentence, colours.accent, 2.5, name=_("this sentence")),
    ]
    curves = [curve for curve in curves if np.isfinite(curve["y"]).any()]
    for curve in curves:
        text = _("{name}, step {step}: {value}", name="%{fullData.name}", step="%{customdata:,}", value="<b>%{y:.3f}</b>")
        curve |= {"hovertemplate": text + "<extra></extra>", "showlegend": True}
    return _figure(colours, dark, 300, curves, snapshots, at, _("loss (nats per token)"), {})


def measure(
    snapshots: Sequence[int],
    values: Array,
    names: Sequence[str],
    groups: Sequence[str],
    at: int,
    chosen: tuple[int, int | None],
    title: str,
    dark: bool,
) -> go.Figure:
    """Line chart of a measure of every head over the snapshots, the selected head in front.

    Args:
        snapshots: their steps.
        values: [snapshot, head].
        names: of the heads.
        groups: kind of attention of each head, which sets its color.
        at: training step of the current snapshot.
        chosen: column of the selected head, and the step at which it specialized, which is marked.
        title: of the measure.
        dark: whether the page is dark.
    """
    colours = scheme(dark)
    kinds = list(dict.fromkeys(groups))
    paints = dict(zip(kinds, (colours.second, colours.faint, colours.accent, colours.text), strict=False))
    selected, moment = chosen
    order = [column for column in range(len(names)) if column != selected] + [selected]
    curves = [
        _curve(snapshots, snapshots, values[:, c], paints[groups[c]], 3.5 if c == selected else 1.2, name=literal(names[c]))
        for c in order
    ]
    for curve, column in zip(curves, order, strict=True):
        text = _("{name}, step {step}: {value}", name=literal(names[column]), step="%{customdata:,}", value="<b>%{y:.3f}</b>")
        curve |= {"hovertemplate": text + "<extra></extra>", "opacity": 1 if column == selected else 0.7}
    keys = [
        {"type": "scatter", "x": [None], "y": [None], "mode": "lines", "name": literal(kind), "line": {"color": paints[kind]}}
        for kind in kinds
    ]
    marks = [_mark(snapshots, values[:, selected], moment, colours, paints[groups[selected]])] if moment is not None else []
    top = {"yaxis": {"range": [-0.03, 1.03 * max(1.0, float(np.nanmax(values, initial=0.0)))]}}
    return _figure(colours, dark, 360, [*keys, *curves, *marks], snapshots, at, title, top)


def _curve(snapshots: Sequence[int], steps: Sequence[int], values: Array, colour: str, width: float, **more: Any) -> dict[str, Any]:
    line = {"color": colour, "width": width, "dash": more.pop("dash", "solid")}
    points = {"x": places(steps, snapshots), "y": np.asarray(values), "customdata": list(steps)}
    dots = {"mode": "lines+markers", "marker": {"size": width + 2.5}}
    return {"type": "scatter", "line": line, "showlegend": False, **points, **dots, **more}


def _mark(snapshots: Sequence[int], values: Array, moment: int, colours: Scheme, colour: str) -> dict[str, Any]:
    """A ring around the point from which the selected head stays past half of its change."""
    at = list(snapshots).index(moment)
    ring = {"symbol": "circle-open", "size": 17, "color": colour, "line": {"width": 2.5}}
    text, side = [_("specializes here")], "right" if at < len(snapshots) / 2 else "left"
    label = {"text": text, "textposition": f"bottom {side}", "textfont": {"color": colours.text}, "mode": "markers+text"}
    points = {"x": [places(snapshots, snapshots)[at]], "y": [float(values[at])], "hoverinfo": "skip"}
    return {"type": "scatter", "showlegend": False, "marker": ring, **label, **points}


def _figure(
    colours: Scheme,
    dark: bool,
    height: int,
    traces: Sequence[dict[str, Any]],
    snapshots: Sequence[int],
    at: int,
    title: str,
    more: dict[str, Any],
) -> go.Figure:
    """Figure with the parts of both pictures: the axis of steps, the line at the current snapshot, the legend above."""
    across = steps_axis(colours, snapshots)
    line = {"type": "line", "x0": places([at], snapshots)[0], "x1": places([at], snapshots)[0], "y0": 0, "y1": 1, "yref": "paper"}
    shapes = [line | {"line": {"color": colours.text, "width": 1.5, "dash": "dash"}, "layer": "below"}]
    down = axis(colours, title) | more.get("yaxis", {})
    legend = LEGEND | {"x": 0, "xanchor": "left"}
    layout = {"xaxis": across, "yaxis": down, "shapes": shapes, "showlegend": True, "legend": legend, "hovermode": "closest"}
    return picture(dark, height, traces, layout, above=BAR_HEIGHT)
