"""Hugging Face folders: a network of the transformers library is run in place, by the library's own code, and recorded.

`folder` reads what lies there without executing anything, `families` knows where each architecture keeps its parts, `loading` puts
the network together, `network` runs it, `attending` records it, `words` is its tokenizer, `slow` tells
which files it is read from where there is no tokenizer.json.

May import: model.errors, model.inspection, model.safe_loading, model.spec, model.tokenizers, model.trace, model.transformer.
"""
