"""Lectures: Markdown files whose steps show views of the app, and the check that they say what the model does.

May import: model.attribution, model.engine, model.errors, model.spec, model.trace, viz.fed_run, viz.labels, viz.links,
viz.opening_run, viz.readings, viz.texts.
"""
