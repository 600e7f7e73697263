"""Tables to take away, as CSV, and the names of files.

May import: model.requests, model.trace, viz.i18n, viz.labels.
"""
