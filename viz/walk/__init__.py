"""The walk through the computation of Step through: stages, formulas, and how one weight was calculated.

May import: model.errors, model.spec, model.trace, viz.canvas, viz.export, viz.figures, viz.labels, viz.page, viz.texts,
viz.waiting.
"""
