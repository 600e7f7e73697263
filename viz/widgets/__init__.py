"""What every page is built of: cards, tables, dialogs, the sidebar, the sentence box, and projector mode.

May import: model.engine, model.errors, model.requests, model.trace, viz.canvas, viz.export, viz.feature, viz.figures, viz.i18n,
viz.labels, viz.panels, viz.session, viz.url.
"""
