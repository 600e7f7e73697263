"""Command line: how a program ends, options of a run, `explain`, `view`, float features from files, and figures.

Commands of features stand in their folders.
"""
