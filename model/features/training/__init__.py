"""Trains a network from a recipe: corpora, losses, resumable state, evaluation."""
