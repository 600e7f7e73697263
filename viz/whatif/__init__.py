"""The page What if, part by part: the list of edits, how they are made, their effect, and what mattered.

May import: model.attribution, model.errors, model.spec, model.trace, viz.calls, viz.canvas, viz.download, viz.edit_words,
viz.fed_run, viz.figures, viz.labels, viz.links, viz.numeric_tables, viz.page, viz.readings, viz.texts, viz.waiting.
"""
