"""The URL: its parameters, how each is read and written, and the view they describe, which is the only state.

May import: model.engine, model.errors, model.requests, model.trace, viz.feature, viz.i18n.
"""
