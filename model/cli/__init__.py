"""Command line: options of a run, `matters`, `serve`, `view`, and float features from files.

May import: model.attribution, model.checkpoints, model.engine, model.errors, model.inference, model.spec, model.trace.
"""
