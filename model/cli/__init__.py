"""Command line: how a program ends, options of a run, `explain`, `view`, float features from files, and figures.

Commands of features stand in their folders.

May import: model.checkpoints, model.engine, model.errors, model.inference, model.inspection, model.known_models,
model.safe_loading, model.requests, model.trace.
"""
