"""The pages, one file each.

May import: model.engine, model.errors, model.inspection, model.spec, model.trace, viz.archive, viz.calls, viz.canvas,
viz.descriptions, viz.download, viz.experiment, viz.export, viz.figure_dialog, viz.figures, viz.file_limit, viz.labels,
viz.link_values, viz.links, viz.numeric_tables, viz.page, viz.public, viz.publication, viz.readings, viz.recording,
viz.sentence, viz.sidebar, viz.texts, viz.walk, viz.whatif.
"""
