"""From text to ids and back: words, byte pair encoding, vocabularies of other programs, and foreign tokenizers in a child process.

May import: model.errors, model.safe_loading, model.spec, model.trace.
"""
