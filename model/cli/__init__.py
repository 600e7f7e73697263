"""Command line: options of a run, `serve`, `view`, and float features from files.

May import: model.checkpoints, model.engine, model.errors, model.spec, model.trace.
"""
