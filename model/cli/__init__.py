"""Command line: how a program ends, options of a run, `matters`, `survey`, `serve`, `view`, float features from
files, and figures, which other commands draw.

May import: model.attribution, model.checkpoints, model.engine, model.errors, model.inference, model.inspection,
model.known_models, model.measures, model.safe_loading, model.spec, model.survey, model.trace.
"""
