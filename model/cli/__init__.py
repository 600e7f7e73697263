"""The options of the command line and what they become.

May import: model.checkpoints, model.engine, model.errors, model.spec, model.trace.
"""
