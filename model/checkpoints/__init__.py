"""Checkpoints: native folders, files of other programs through a layout, and folders of the transformers library.

May import: model.errors, model.huggingface, model.inspection, model.known_models, model.safe_loading, model.requests,
model.sharing, model.tokenizers, model.trace, model.transformer.
"""
