"""Words for what is drawn: tokens, sites, edits, and the texts that a screen reader reads for a picture.

May import: model.measures, model.requests, model.trace, viz.i18n.
"""
