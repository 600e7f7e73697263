"""Claims about runs: what lectures claim and ask, the words for it, and the runs that it is about. Features bring further kinds.

May import: model.engine, model.errors, model.requests, model.trace, viz.feature, viz.i18n, viz.labels, viz.metrics, viz.url.
"""
