"""The class of a lecture: its state, its followers, their answers, and the routes through which browsers reach it.

May import: model.engine, model.errors, model.spec, viz.canvas, viz.export, viz.public, viz.texts.
"""
