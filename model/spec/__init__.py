"""Frozen values that describe a network and a run: ModelSpec and RunRequest, and the check of every value read from a file.

May import: model.errors.
"""
