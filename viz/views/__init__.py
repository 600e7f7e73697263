"""The pages: a folder each, or a file. Not called `pages`: Streamlit takes a folder of that name beside its script for its own.

May import: model.engine, model.errors, model.inspection, model.measures, model.requests, model.trace, viz.canvas,
viz.export, viz.feature, viz.figures, viz.i18n, viz.labels, viz.metrics, viz.panels, viz.session, viz.url, viz.widgets.
"""
