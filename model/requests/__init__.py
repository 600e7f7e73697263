"""Frozen values that describe a network and a run, ModelSpec and RunRequest; and the validation of every value read from a file."""
