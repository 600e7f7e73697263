"""Tokenizers, from text to ids and back: words, byte pair encoding, vocabularies and tokenizers of other programs.

May import: model.errors, model.safe_loading, model.requests, model.trace.
"""
