"""From a trace to the scene of one drawing: a JSON header and arrays.

May import: model.errors, model.trace, viz.descriptions, viz.labels, viz.links, viz.readings, viz.texts, viz.theme.
"""
