"""Lectures: `script/` reads and checks them, `presenter/` shows them, `classroom/` is the class, `editor` writes one.

May import: model.engine, model.errors, model.measures, model.sharing, model.spec, model.trace, viz.canvas, viz.claims,
viz.export, viz.figures, viz.i18n, viz.labels, viz.metrics, viz.panels, viz.session, viz.url, viz.views.
"""
