"""The URL: its parameters, how each is read and written, and the view they describe, which is the only state.

May import: model.engine, model.errors, model.spec, model.trace, viz.feature, viz.i18n.
"""
