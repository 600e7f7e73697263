"""Tokenizers that cut words into pieces by rules of a foreign file. They run in a child process with bounds, and may die there.

`process` is the parent's side of that process, `child` the process itself, `readers` the libraries that it cuts with. This package
imports no torch, and `process` none of the libraries.
"""
