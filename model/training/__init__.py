"""Trains a network from a recipe: corpora, losses, resumable state, evaluation.

May import: model.checkpoints, model.errors, model.inference, model.spec, model.tokenizers, model.trace, model.transformer.
"""
