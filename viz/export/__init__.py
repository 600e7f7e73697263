"""Tables to take away, as CSV, and the names of files.

May import: model.spec, model.trace, viz.i18n, viz.labels.
"""
