"""Holding a lecture: the views of its steps as pictures that need no script run, the pages of lecturer and students, the file to
take home.

May import: model.engine, model.errors, model.sharing, model.spec, model.trace, viz.canvas, viz.classroom, viz.export, viz.figures,
viz.labels, viz.language, viz.lecture_editor, viz.lectures, viz.links, viz.opening_run, viz.page, viz.public, viz.publication,
viz.readings, viz.texts, viz.theme, viz.views, viz.waiting, viz.walk.
"""
