"""Pure functions from a trace to a Plotly figure.

May import: model.trace, viz.i18n, viz.labels.
"""
