"""Stages of the computation for the page Step through: formulas, numbers, and how one weight was calculated.

May import: model.errors, model.spec, model.trace, viz.canvas, viz.descriptions, viz.download, viz.figure_dialog, viz.figures,
viz.labels, viz.numeric_tables, viz.page, viz.publication, viz.texts, viz.waiting.
"""
