"""The class of a lecture: its state, its followers, their answers, and the routes through which browsers reach it.

May import: model.engine, viz.canvas, viz.public, viz.texts.
"""
