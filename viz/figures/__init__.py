"""Pure functions from a trace to a Plotly figure.

May import: model.trace, viz.labels, viz.texts, viz.theme.
"""
