"""How much of a run some paths carry."""

import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import axis, picture
from viz.figures.theme import scheme
from viz.i18n.translate import _


def kept(numbers: Array, log_probabilities: Array, dark: bool) -> go.Figure:
    """Log-probability of a token by the number of paths that are kept; steps are evenly far apart, since each doubles the number.

    Args:
        numbers: [step], how many paths.
        log_probabilities: [step], in nats.
        dark: which scheme.
    """
    colours = scheme(dark)
    names = [f"{int(count):,}" for count in numbers]
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(len(names))),
        "y": [float(value) for value in log_probabilities],
        "text": names,
        "line": {"color": colours.accent, "width": 2.5},
        "hovertemplate": _("paths kept") + ": %{text}<br>" + _("log-probability") + ": %{y:.2f}<extra></extra>",
    }
    ticks = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": names}
    layout = {
        "xaxis": axis(colours, _("paths kept")) | ticks,
        "yaxis": axis(colours, _("log-probability of the token (nats)")) | {"showgrid": True},
        "hovermode": "closest",
    }
    return picture(dark, 300, [line], layout)
