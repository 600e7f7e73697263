"""Subword tokenizers of other programs. They run in a child process with limits, so a crash or an endless loop ends only that
process.

`process` is the parent's side, `child` the child process, `readers` wraps the tokenizer libraries, which only the child imports.
This package does not import torch.
"""
