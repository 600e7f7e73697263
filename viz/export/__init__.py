"""Files to take away: tables, archives, notebooks, and figures for print (`print/`).

May import: model.errors, model.spec, model.trace, viz.canvas, viz.figures, viz.i18n, viz.labels, viz.metrics, viz.panels, viz.url.
"""
