"""Lectures: `script/` reads and checks them, `presenter/` shows them, `classroom/` is the class, `editor` writes one.

May import: model.attribution, model.engine, model.errors, model.measures, model.sharing, model.spec, model.survey, model.trace,
viz.canvas, viz.export, viz.features.compare, viz.features.modern_attention, viz.features.training, viz.figures, viz.i18n,
viz.labels, viz.metrics, viz.panels, viz.session, viz.url, viz.views.
"""
